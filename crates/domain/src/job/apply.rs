//! What a fact leaves behind on a job. Folding never judges: a fact has happened.

use super::attempt::{Attempt, AttemptEnd, ObservedRelease, Trigger};
use super::cancel::{CANCEL_UNCONFIRMED, CANCELLED_BEFORE_START, CancelRequest, KeptCancelAnswer};
use super::details::{Details, Note};
use super::fact::{CancelCause, ExpiryCause, JobFact, RequeueCause, StaleReport, Unavailability};
use super::hold::Pause;
use super::holder::Holder;
use super::state::{Job, JobState, JobStateName};
use crate::body::BodyRef;
use crate::limits::{KEPT_ATTEMPTS, KEPT_CANCEL_ANSWERS, KEPT_EVIDENCE, KEPT_NOTES, keep_last};
use crate::{Misfold, Timestamp};

/// Folds one fact, recorded at this time, into the job.
pub fn apply(job: &mut Job, fact: &JobFact, at: Timestamp) -> Result<(), Misfold> {
    job.hear_of_delivery(fact, at);
    match fact {
        JobFact::Created(_) => return Err(Misfold("the job was created twice")),
        JobFact::Dispatched { attempt_id, number, owner, trigger, holder } => job.begin(
            Attempt {
                id: attempt_id.clone(),
                number: *number,
                owner: owner.clone(),
                holder: holder.clone(),
                trigger: *trigger,
                started_at: at,
                moved_micros: 0,
                delivered_at: None,
                end: None,
                release: None,
            },
            at,
        ),
        JobFact::Delivered => {
            job.pass_on();
            job.go(JobState::Delivered, Some("delivered"));
        }
        JobFact::Started(details) => job.report(JobState::Running, details, at),
        JobFact::InputAwaited(details) => job.report(JobState::AwaitingInput, details, at),
        JobFact::Blocked(details) => job.report(JobState::Blocked, details, at),
        JobFact::SubmitIntended(intent) => job.intent = Some(intent.clone()),
        JobFact::Deferred { operation_id, then } => {
            job.intent = None;
            let state = JobState::AwaitingExternal { operation: operation_id.clone(), then: *then };
            job.go(state, Some("awaiting_external"));
        }
        JobFact::ExternalArrived(details) => {
            job.report(JobState::Running, details, at);
            job.resume_pending = true;
        }
        JobFact::Answered(kept) => job.take_answer(kept.answer),
        JobFact::Resumed => {
            job.resume_pending = false;
            if let Some(attempt) = job.attempts.last_mut() {
                attempt.release = None;
            }
        }
        JobFact::Noted(details) => job.note(details, at),
        JobFact::Completed(details) => job.end(JobState::Completed, details, None, at),
        JobFact::Failed(details) => job.end(JobState::Failed, details, Some("failed"), at),
        JobFact::Requeued { due_at, cause, details } => {
            match cause {
                RequeueCause::AttemptFailed => job.intent = None,
                RequeueCause::Asked => {
                    job.end_attempt(JobStateName::Queued, Some(requeue_reason(*cause).to_owned()), at);
                    job.begin_anew();
                }
                RequeueCause::LeaseLost | RequeueCause::SubmitUnknown => {}
            }
            job.requeue(*due_at, details, requeue_reason(*cause), at);
        }
        JobFact::Paused { by, reason } => {
            job.paused = Some(Box::new(Pause { at, by: by.clone(), reason: reason.clone() }));
        }
        JobFact::Unpaused { .. } => job.paused = None,
        JobFact::CancelRequested { by, reason, limit_at } => job.ask_to_stop(CancelRequest {
            requested_at: at,
            by: by.clone(),
            reason: reason.clone(),
            in_state: job.state.name(),
            limit_at: *limit_at,
            tried: None,
            answers: Vec::new(),
            repeats: 0,
            repeated: Vec::new(),
        }),
        JobFact::CancelRepeated { by, reason } => {
            if let Some(cancel) = &mut job.cancel {
                cancel.repeat(by.as_deref(), reason, at);
            }
        }
        JobFact::CancelRepeatsCounted { count } => {
            if let Some(cancel) = &mut job.cancel {
                cancel.repeats = cancel.repeats.saturating_add(*count);
            }
        }
        JobFact::CancelTried(tried) => {
            if let Some(cancel) = &mut job.cancel {
                cancel.try_again(tried, at);
            }
        }
        JobFact::CancelAnswered(answer) => {
            if let Some(cancel) = &mut job.cancel {
                let kept = KeptCancelAnswer { at, answer: answer.clone(), told: None, said: None };
                keep_last(&mut cancel.answers, kept, KEPT_CANCEL_ANSWERS);
            }
        }
        JobFact::Cancelled(end) => {
            let reason = job.cancel_reason(end.cause);
            if let (CancelCause::Confirmed, Some(cancel)) = (end.cause, &mut job.cancel) {
                cancel.confirm(at);
            }
            job.end(JobState::Cancelled, &end.details, Some(reason), at);
        }
        JobFact::Expired(end) => {
            job.end(JobState::Expired, &end.details, Some(expiry_reason(end.cause)), at);
        }
        JobFact::BecameUnavailable(end) => {
            let lease_lost = end.cause == Unavailability::LeaseLost;
            let reason = if lease_lost { "runner_interrupted" } else { "unavailable" };
            job.end(JobState::Unavailable { lease_lost }, &end.details, Some(reason), at);
        }
        JobFact::StaleReportKept(report) => {
            job.purged &= report.details.bodies().next().is_none();
            keep_last(&mut job.evidence, StaleReport { at, ..report.clone() }, KEPT_EVIDENCE);
            job.stale_reports = job.stale_reports.saturating_add(1);
        }
        JobFact::StaleReportsCounted { count } => {
            job.stale_reports = job.stale_reports.saturating_add(*count);
        }
        JobFact::ExecutorReleased { attempt, release } => {
            if let Some(attempt) = job.attempts.iter_mut().find(|kept| kept.number == *attempt) {
                attempt.release = Some(ObservedRelease { at, release: *release });
            }
        }
        JobFact::TimersMoved { by_micros } => job.move_timers(*by_micros),
        JobFact::Purged => job.purge(at),
        JobFact::Retired => {}
    }
    if !matches!(job.state, JobState::Queued { .. }) {
        job.paused = None;
    }
    job.updated_at = at;
    Ok(())
}

const fn requeue_reason(cause: RequeueCause) -> &'static str {
    match cause {
        RequeueCause::AttemptFailed => "attempt_failed",
        RequeueCause::LeaseLost => "lease_lost",
        RequeueCause::SubmitUnknown => "submit_outcome_unknown",
        RequeueCause::Asked => "asked_again",
    }
}

const fn expiry_reason(cause: ExpiryCause) -> &'static str {
    match cause {
        ExpiryCause::TimeOver => "deadline_elapsed",
        ExpiryCause::OperationExpired => "operation_expired",
        ExpiryCause::Reported => "expired",
    }
}

/// An empty text takes away what was there, as a missing one does.
fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

impl Job {
    /// A new attempt. One that goes on after a pause goes on with what has come in.
    fn begin(&mut self, attempt: Attempt, at: Timestamp) {
        let goes_on = attempt.trigger == Trigger::Continued;
        let reason = if goes_on { "handed_on" } else { "superseded" };
        self.end_attempt(JobStateName::Dispatching, Some(reason.to_owned()), at);
        self.attempt_count = attempt.number;
        keep_last(&mut self.attempts, attempt, KEPT_ATTEMPTS);
        if !goes_on {
            self.begin_anew();
        }
        self.resume_pending = false;
        self.phase = None;
        self.go(JobState::Dispatching, Some("dispatching"));
    }

    /// The previous attempt's result stays with that attempt and leaves the job.
    fn begin_anew(&mut self) {
        self.result = super::ResultRefs::default();
        self.attempts_used_up = false;
        self.limit = None;
        self.completed_at = None;
        self.cancel = None;
        self.answers.clear();
    }

    /// Whoever reports on an attempt has it in hand.
    fn hear_of_delivery(&mut self, fact: &JobFact, at: Timestamp) {
        let is_told = matches!(
            fact,
            JobFact::Delivered
                | JobFact::Started(_)
                | JobFact::InputAwaited(_)
                | JobFact::Blocked(_)
                | JobFact::SubmitIntended(_)
                | JobFact::Deferred { .. }
                | JobFact::Completed(_)
        );
        let open = self.attempts.last_mut().filter(|attempt| attempt.end.is_none());
        if let (true, Some(attempt)) = (is_told, open) {
            attempt.delivered_at.get_or_insert(at);
        }
    }

    /// An executor of the daemon gave the attempt to someone else, who knows its id from there.
    fn pass_on(&mut self) {
        if let Some(attempt) = self.attempts.last_mut()
            && attempt.holder == Holder::Daemon
        {
            attempt.holder = Holder::Bearer;
        }
    }

    fn go(&mut self, state: JobState, reason: Option<&str>) {
        self.state = state;
        // A pending cancel stays the reason that people see until the job ends.
        if self.cancel.is_none() {
            self.state_reason = reason.map(str::to_owned);
        }
    }

    fn report(&mut self, state: JobState, details: &Details, at: Timestamp) {
        let name = state.name();
        self.go(state, given(details.reason.as_deref()));
        self.resume_pending &= name == JobStateName::Running;
        self.take_details(details, name, at);
    }

    /// The state stays. What is added after the end belongs to the attempt that ended there.
    fn note(&mut self, details: &Details, at: Timestamp) {
        self.report(self.state.clone(), details, at);
        if let Some(end) = self.attempts.last_mut().and_then(|attempt| attempt.end.as_mut()) {
            end.result.clone_from(&self.result);
        }
    }

    fn requeue(&mut self, due_at: Timestamp, details: &Details, reason: &str, at: Timestamp) {
        self.result.merge(&details.result);
        self.end_attempt(JobStateName::Queued, details.reason.clone().or(Some(reason.to_owned())), at);
        self.result = super::ResultRefs::default();
        self.resume_pending = false;
        self.go(JobState::Queued { due_at }, Some(reason));
        let kept = Details { result: super::ResultRefs::default(), ..details.clone() };
        self.take_details(&kept, JobStateName::Queued, at);
        self.keep_bodies(details);
    }

    fn end(&mut self, state: JobState, details: &Details, reason: Option<&str>, at: Timestamp) {
        let name = state.name();
        if name == JobStateName::Completed && self.state == (JobState::Unavailable { lease_lost: true }) {
            // Its worker was not lost after all.
            self.result.error = None;
        }
        self.state = state;
        // The executor has said how it ended, or the orphan ledger has it.
        self.intent = None;
        self.state_reason = given(details.reason.as_deref()).or(reason).map(str::to_owned);
        self.resume_pending = false;
        self.attempts_used_up = details.attempts_used_up;
        self.limit = details.limit.as_deref().cloned();
        self.completed_at = Some(at);
        self.take_details(details, name, at);
        self.end_attempt(name, self.state_reason.clone(), at);
    }

    /// Closes the current attempt, once. Only a late report replaces the end that a lost lease had written.
    fn end_attempt(&mut self, state: JobStateName, reason: Option<String>, at: Timestamp) {
        let result = self.result.clone();
        let Some(attempt) = self.attempts.last_mut() else { return };
        let late_report = state.is_terminal()
            && attempt.end.as_ref().is_some_and(|end| end.state == JobStateName::Unavailable);
        if attempt.end.is_none() || late_report {
            attempt.end = Some(AttemptEnd { at, state, reason, result });
        }
    }

    fn take_details(&mut self, details: &Details, state: JobStateName, at: Timestamp) {
        if let Some(note) = &details.note {
            let phase = details.phase.clone().or_else(|| self.phase.clone());
            keep_last(&mut self.notes, Note { at, note: note.clone(), state, phase }, KEPT_NOTES);
        }
        if let (Some(release), Some(attempt)) = (details.release, self.attempts.last_mut()) {
            attempt.release = Some(ObservedRelease { at, release });
        }
        self.phase = given(details.phase.as_deref()).map(str::to_owned);
        if details.progress.is_some() {
            self.progress.clone_from(&details.progress);
        }
        self.result.merge(&details.result);
        self.keep_bodies(details);
    }

    fn take_answer(&mut self, answer: BodyRef) {
        self.keep_body(answer);
        self.answers.push(answer);
        self.go(JobState::Running, Some("answered"));
        // Unmanaged work has no executor to call: its doer reads the answer from the record.
        self.resume_pending = !self.attempts.is_empty();
    }

    /// What is over keeps its reason.
    fn ask_to_stop(&mut self, request: CancelRequest) {
        if !request.is_late() {
            self.state_reason = Some("cancel_requested".to_owned());
        }
        self.cancel = Some(request);
    }

    fn cancel_reason(&self, cause: CancelCause) -> &'static str {
        let was_queued = self.cancel.as_ref().is_none_or(|cancel| cancel.in_state == JobStateName::Queued);
        match cause {
            CancelCause::NeverStarted if !was_queued => CANCELLED_BEFORE_START,
            CancelCause::NeverStarted | CancelCause::Confirmed => "cancelled",
            CancelCause::TimedOut | CancelCause::SubmitUnknown => CANCEL_UNCONFIRMED,
            CancelCause::LeaseLost => "cancel_unconfirmed_lease_lost",
        }
    }

    /// What it was asked to do is gone for good, whatever comes later. A title may repeat it.
    fn purge(&mut self, at: Timestamp) {
        self.purged = true;
        self.purged_at = Some(at);
        self.bodies.clear();
        self.answers.clear();
        self.spec.title.clear();
        if let Some(cancel) = &mut self.cancel {
            cancel.forget_words();
        }
    }

    fn keep_bodies(&mut self, details: &Details) {
        for body in details.bodies() {
            self.keep_body(*body);
        }
    }

    fn keep_body(&mut self, body: BodyRef) {
        self.bodies.retain(|kept| kept.name != body.name);
        self.bodies.push(body);
        self.purged = false;
    }
}
