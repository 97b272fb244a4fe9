//! What may happen to a run: one function per command.
//!
//! The walk itself derives (`walk.rs`); here is only whether something may happen. What came too late for the walk is no refusal: the job that says it
//! keeps it, and the run goes its way.

use super::command::{NewRun, Prepared, Readiness, RunCommand, StepEnd};
use super::fact::RunFact;
use super::state::{Run, Visit, VisitIndex, VisitState};
use super::{MAX_CANCELLED, MAX_PREPARED, apply};
use crate::body::BodyName;
use crate::job::JobCommand;
use crate::limits::{MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_text, cut};
use crate::planted::{Bug, planted};
use crate::{Consequence, JobId, RecordId, Refusal, RunId, Timestamp};

type Decision = crate::Decision<RunFact>;

/// Decides a command on a run that does not exist yet.
pub fn decide_new(id: &RunId, command: &RunCommand, _: Timestamp) -> Decision {
    match command {
        RunCommand::Start(new) => start(id, new),
        // A job may outlive its run; its own record keeps how it ended.
        RunCommand::EndStep { .. } | RunCommand::ReopenStep { .. } | RunCommand::MoveTimers { .. } => {
            Decision::Nothing
        }
        RunCommand::Advance(_)
        | RunCommand::RequestCancel { .. }
        | RunCommand::ContinueCancel
        | RunCommand::Condemn { .. }
        | RunCommand::Retire => Decision::refuse(Refusal::UnknownRecord),
    }
}

/// Decides a command on a run.
pub fn decide(run: &Run, command: &RunCommand, now: Timestamp) -> Decision {
    match command {
        RunCommand::Start(_) => Decision::refuse(Refusal::AlreadyExists),
        RunCommand::Advance(prepared) => advance(run, prepared, now),
        RunCommand::EndStep { visit, job_id, end } => end_step(run, *visit, job_id, end, now),
        RunCommand::ReopenStep { visit, job_id } => reopen_step(run, *visit, job_id),
        RunCommand::RequestCancel { by, reason } => request_cancel(run, by.as_deref(), reason, now),
        RunCommand::ContinueCancel => continue_cancel(run, now),
        RunCommand::Condemn { reason } => condemn(run, reason, now),
        RunCommand::MoveTimers { by_micros } => {
            Decision::fact(RunFact::TimersMoved { by_micros: *by_micros })
        }
        RunCommand::Retire => match run.end {
            Some(_) => Decision::fact(RunFact::Retired),
            None => Decision::refuse(Refusal::RunOpen),
        },
    }
}

fn start(id: &RunId, new: &NewRun) -> Decision {
    match RecordId::Run(id.clone()).check().and_then(|()| new.check()) {
        Ok(()) => Decision::fact(RunFact::Started(Box::new(new.clone()))),
        Err(refusal) => refusal.into(),
    }
}

/// Begins what waits and was prepared. Whoever prepared it may have seen an earlier state: what does not wait is left alone.
fn advance(run: &Run, prepared: &[Prepared], now: Timestamp) -> Decision {
    let mut after = Following::of(run, now);
    for Prepared { visit, origin, readiness } in prepared.iter().take(MAX_PREPARED) {
        let waits = after.run.visit(*visit).is_some_and(|visit| visit.state == VisitState::Waiting);
        if !waits || after.run.origin(*visit) != *origin {
            continue;
        }
        let is_group = after.run.is_group(*visit);
        match readiness {
            Readiness::Job { .. } if is_group => {}
            Readiness::Enter if !is_group => {}
            Readiness::Job { job_id, job } => {
                if !job.bodies.iter().any(|body| body.name == BodyName::Input) {
                    return Refusal::WrongBody { expected: "input", given: "none" }.into();
                }
                after.fact(RunFact::StepStarted { visit: *visit, job_id: job_id.clone() });
                after.then(job_id.clone(), JobCommand::Create(job.clone()));
            }
            Readiness::Enter => after.fact(RunFact::GroupEntered { visit: *visit }),
            Readiness::Skip => after.fact(RunFact::StepEnded { visit: *visit, end: StepEnd::Skipped }),
            Readiness::Fail { code } => {
                let end = StepEnd::Failed { code: cut(code, MAX_LABEL_BYTES).to_owned() };
                after.fact(RunFact::StepEnded { visit: *visit, end });
            }
        }
    }
    after.decided()
}

fn end_step(run: &Run, at: VisitIndex, job_id: &JobId, end: &StepEnd, now: Timestamp) -> Decision {
    let Some(visit) = run.visit(at).filter(|visit| visit.job_id() == Some(job_id)) else {
        return Decision::Nothing;
    };
    let mut after = Following::of(run, now);
    match &visit.state {
        VisitState::Open(_) => {}
        // A job that was given up has ended after all.
        VisitState::Over { end: before, .. } if before != end && may_reopen(run, visit) => {
            after.fact(RunFact::StepReopened { visit: at, job_id: job_id.clone() });
        }
        VisitState::Over { .. } if planted(Bug::StepEndedTwice) => {}
        VisitState::Over { .. } | VisitState::Waiting | VisitState::Inside => return Decision::Nothing,
    }
    after.fact(RunFact::StepEnded { visit: at, end: end.clone() });
    after.decided()
}

fn reopen_step(run: &Run, at: VisitIndex, job_id: &JobId) -> Decision {
    let Some(visit) = run.visit(at).filter(|visit| visit.job_id() == Some(job_id)) else {
        return Decision::Nothing;
    };
    if !visit.is_over() {
        return Decision::Nothing;
    }
    if may_reopen(run, visit) {
        Decision::fact(RunFact::StepReopened { visit: at, job_id: job_id.clone() })
    } else {
        Decision::refuse(Refusal::StepMovedOn)
    }
}

/// Whether the walk still stands where this visit went wrong: nothing was made of its failure, nor of that of a group around it.
fn may_reopen(run: &Run, visit: &Visit) -> bool {
    let unhandled = run.is_unhandled(visit) || planted(Bug::HandledStepReopened);
    if run.cancel.is_some() || run.condemned.is_some() || !unhandled {
        return false;
    }
    match visit.within.and_then(|group| run.visit(group)) {
        Some(group) if group.is_over() => may_reopen(run, group),
        Some(_) | None => true,
    }
}

fn request_cancel(run: &Run, by: Option<&str>, reason: &str, now: Timestamp) -> Decision {
    if let Err(refusal) = check_text("reason", reason, MAX_NOTE_BYTES) {
        return refusal.into();
    }
    if run.cancel.is_some() {
        return Decision::Nothing;
    }
    let (by, reason) = (by.map(str::to_owned), reason.to_owned());
    // One that has ended keeps its end, and none of its steps is tried again: see `may_reopen`.
    let (first, next) = cut_off(run.open_jobs().filter(|_| run.end.is_none()));
    let mut after = Following::of(run, now);
    after.fact(RunFact::CancelRequested { by: by.clone(), reason: reason.clone(), next });
    after.cancel(first, by.as_ref(), &reason);
    after.decided()
}

/// The next jobs are asked to stop, by whoever asked the first.
fn continue_cancel(run: &Run, now: Timestamp) -> Decision {
    let (these, next) = cut_off(run.not_yet_cancelled());
    let Some(cancel) = run.cancel.as_ref().filter(|_| !these.is_empty()) else { return Decision::Nothing };
    let mut after = Following::of(run, now);
    after.fact(RunFact::CancelContinued { next });
    after.cancel(these, cancel.by.as_ref(), &cancel.reason);
    after.decided()
}

/// As many jobs as one commit asks to stop, and the first visit that is left.
fn cut_off<'a>(mut jobs: impl Iterator<Item = (VisitIndex, &'a JobId)>) -> (Vec<JobId>, Option<VisitIndex>) {
    let these = jobs.by_ref().take(MAX_CANCELLED).map(|(_, job_id)| job_id.clone()).collect();
    (these, jobs.next().map(|(at, _)| at).filter(|_| !planted(Bug::CancelCursorForgotten)))
}

fn condemn(run: &Run, reason: &str, now: Timestamp) -> Decision {
    if let Err(refusal) = check_text("reason", reason, MAX_LABEL_BYTES) {
        return refusal.into();
    }
    if run.end.is_some() || run.condemned.is_some() {
        return Decision::Nothing;
    }
    let mut after = Following::of(run, now);
    after.fact(RunFact::Condemned { reason: reason.to_owned() });
    after.decided()
}

/// A run as the facts so far leave it; its end is found when they are all there.
struct Following {
    run: Run,
    now: Timestamp,
    facts: Vec<RunFact>,
    consequences: Vec<Consequence>,
}

impl Following {
    fn of(run: &Run, now: Timestamp) -> Self {
        Self { run: run.clone(), now, facts: Vec::new(), consequences: Vec::new() }
    }

    fn fact(&mut self, fact: RunFact) {
        // What a fact would not fit is not decided: the visit was looked at before.
        if apply(&mut self.run, &fact, self.now).is_ok() {
            self.facts.push(fact);
        }
    }

    fn then(&mut self, job_id: JobId, command: JobCommand) {
        self.consequences.push(Consequence { record: job_id.into(), command: command.into() });
    }

    fn cancel(&mut self, jobs: Vec<JobId>, by: Option<&String>, reason: &str) {
        for job_id in jobs {
            let command = JobCommand::RequestCancel { by: by.cloned(), reason: reason.to_owned() };
            self.then(job_id, command);
        }
    }

    fn decided(mut self) -> Decision {
        if self.facts.is_empty() {
            return Decision::Nothing;
        }
        self.facts.extend(self.run.comes_to_an_end().map(RunFact::Ended));
        Decision::Facts { facts: self.facts, consequences: self.consequences }
    }
}
