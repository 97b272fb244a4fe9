//! What a fact leaves behind on an operation. Folding never judges: a fact has happened.

use super::command::PollError;
use super::fact::{LatePolled, OperationFact, Polled, Settlement};
use super::orphan::Aftermath;
use super::state::{Diagnostic, Ended, HINT_INVALID, How, LATE_STATUS_IGNORED, Operation, OperationCancel};
use crate::body::BodyRef;
use crate::job::{CancelAnswer, KeptCancelAnswer};
use crate::limits::{KEPT_CANCEL_ANSWERS, KEPT_TEXTS, cut, keep_last};
use crate::planted::{Bug, planted};
use crate::policy::LifeLimit;
use crate::{Misfold, Timestamp};

/// Folds one fact, recorded at this time, into the operation.
pub fn apply(operation: &mut Operation, fact: &OperationFact, at: Timestamp) -> Result<(), Misfold> {
    match fact {
        OperationFact::Dispatched(_) => return Err(Misfold("the operation was dispatched twice")),
        OperationFact::Polled(polled) => operation.take_poll(polled, at),
        OperationFact::Resolved(ending) => {
            operation.last_polled_at = Some(at);
            operation.end(How::Resolved(ending.clone()), at);
        }
        OperationFact::CancelRequested { by, reason } => {
            // Whoever asks for that wants to know what came of it: what was asked about before begins anew.
            operation.aftermath = None;
            let before = operation.cancel.take();
            operation.cancel = Some(OperationCancel {
                requested_at: at,
                by: by.clone(),
                reason: reason.clone(),
                tries: 0,
                tries_before: before.as_ref().map_or(0, OperationCancel::tries_in_all),
                next_try_at: Some(at),
                answers: before.map(|before| before.answers).unwrap_or_default(),
            });
        }
        OperationFact::CancelAnswered { answer, told, said, next_try_at } => {
            operation.keep_text(*said);
            if let Some(cancel) = &mut operation.cancel {
                cancel.tries += 1;
                cancel.next_try_at = *next_try_at;
                let kept = KeptCancelAnswer { at, answer: answer.clone(), told: told.clone(), said: *said };
                keep_last(&mut cancel.answers, kept, KEPT_CANCEL_ANSWERS);
            }
        }
        OperationFact::Cancelled => operation.end(How::Cancelled, at),
        OperationFact::Expired { cause } => operation.end(How::Expired(cause.clone()), at),
        OperationFact::HandleLearned { handle, cancelability, external_job_id } => {
            operation.handle = Some(*handle);
            operation.external_job_id.clone_from(external_job_id);
            operation.cancelability = cancelability.clone();
        }
        OperationFact::Settled(how) => {
            operation.settled = Some(how.clone());
            if let Some(cancel) = &mut operation.cancel {
                cancel.next_try_at = None;
                if *how == Settlement::Stopped {
                    // The answer that settled it is one as well.
                    cancel.tries += 1;
                    let kept =
                        KeptCancelAnswer { at, answer: CancelAnswer::Cancelled, told: None, said: None };
                    keep_last(&mut cancel.answers, kept, KEPT_CANCEL_ANSWERS);
                }
            }
            if let Some(aftermath) = &mut operation.aftermath {
                aftermath.next_poll_at = None;
            }
        }
        OperationFact::LatePolled(polled) => operation.take_late_poll(polled, at),
        OperationFact::Contradicted { status } => {
            operation.diagnose(LATE_STATUS_IGNORED, &format!("the service said {status}"), at);
        }
        OperationFact::TimersMoved { by_micros } => operation.move_timers(*by_micros),
        OperationFact::Purged { handle_kept } => {
            operation.purged = true;
            operation.texts.clear();
            for kept in operation.cancel.iter_mut().flat_map(|cancel| &mut cancel.answers) {
                kept.forget_words();
            }
            operation.handle = operation.handle.filter(|_| *handle_kept);
        }
        OperationFact::Retired => {}
    }
    operation.updated_at = at;
    Ok(())
}

impl Operation {
    fn take_poll(&mut self, polled: &Polled, at: Timestamp) {
        self.polls = self.polls.saturating_add(1);
        self.last_polled_at = Some(at);
        self.next_poll_at = polled.next_poll_at;
        self.errors_in_row = if polled.error.is_some() { self.errors_in_row.saturating_add(1) } else { 0 };
        // A fact that was made in this process may still hold the words; a stored one does not.
        let error = polled.error.as_ref().map(PollError::without_words);
        self.reported = polled.status.unwrap_or(self.reported);
        self.interval_seconds = polled.interval_seconds.unwrap_or(self.interval_seconds);
        self.asked_retry_after_seconds = polled.asked_retry_after_seconds.or(self.asked_retry_after_seconds);
        if let Some(sooner) = polled.expires_at {
            self.expires_at = sooner;
            self.bounded_by = Some(LifeLimit::FailAfter);
        }
        if polled.progress_hint.is_some() {
            self.progress_hint.clone_from(&polled.progress_hint);
        }
        if polled.progress.is_some() {
            self.progress.clone_from(&polled.progress);
        }
        if let Some(error) = &error {
            self.diagnose(&error.code, &error.shown(), at);
            self.keep_text(error.said);
        }
        self.last_error = error;
        if polled.invalid_hint {
            self.diagnose_hint(at);
        }
    }

    /// Every answer of a service may read differently, and polls are many: the first different ones are kept.
    fn keep_text(&mut self, said: Option<BodyRef>) {
        let Some(said) = said.filter(|_| !self.purged) else { return };
        if self.texts.len() < KEPT_TEXTS && !self.texts.contains(&said) {
            self.texts.push(said);
        }
    }

    fn take_late_poll(&mut self, polled: &LatePolled, at: Timestamp) {
        self.keep_text(polled.error.as_ref().and_then(|error| error.said));
        self.last_polled_at = Some(at);
        let polls = self.aftermath.as_ref().map_or(0, |aftermath| aftermath.polls);
        self.aftermath = Some(Aftermath {
            polls: polls.saturating_add(1),
            last_error: polled.error.as_ref().map(PollError::without_words),
            next_poll_at: polled.next_poll_at,
        });
    }

    /// The first end stays, whatever the stream says later.
    fn end(&mut self, how: How, at: Timestamp) {
        if self.ended.is_none() || planted(Bug::LastAnswerWins) {
            self.ended = Some(Ended { at, how });
        }
    }

    /// A service whose hint made no sense is asked at the host's shortest wait.
    pub(super) fn diagnose_hint(&mut self, at: Timestamp) {
        self.diagnose(HINT_INVALID, "the service's hint on when to ask made no sense", at);
    }

    fn diagnose(&mut self, code: &str, message: &str, at: Timestamp) {
        let limit = usize::from(self.policy.diagnostics_max_items.max(1));
        let most = usize::try_from(self.policy.diagnostics_max_bytes).unwrap_or(usize::MAX);
        let diagnostic =
            Diagnostic { at, code: cut(code, most).to_owned(), message: cut(message, most).to_owned() };
        keep_last(&mut self.diagnostics, diagnostic, limit);
    }
}
