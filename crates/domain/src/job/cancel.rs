//! Requests to stop a job. A cancel is a request first; it is terminal only when confirmed or when its time is over.

use serde::{Deserialize, Serialize};

use super::phase::Phase;
use super::state::{Job, JobState, JobStateName};
use crate::body::BodyRef;
use crate::limits::{
    KEPT_CANCEL_REPEATS, MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_optional, check_text, keep_last,
};
use crate::planted::{Bug, planted};
use crate::{Refusal, Timestamp};

/// The reason of a dispatched job that was cancelled before its executor began anything.
pub const CANCELLED_BEFORE_START: &str = "cancelled_before_start";
/// The reason of a cancelled job of which nobody has confirmed that it has stopped.
pub const CANCEL_UNCONFIRMED: &str = "cancel_unconfirmed";
/// Why the daemon asks a job to stop when the time of the caller who waits for it is over.
pub const ACTION_TIMEOUT: &str = "action-timeout";

/// The request to stop a job, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    pub reason: String,
    /// The state that the job was in.
    pub in_state: JobStateName,
    /// When waiting for a confirmation ends; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_at: Option<Timestamp>,
    /// What came of passing it on to whoever does the work, if anything has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<KeptCancelTry>,
    /// What executors answered, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<KeptCancelAnswer>,
    /// How often it was asked for again.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub repeats: u32,
    /// The first of these repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<CancelRepeat>,
}

/// A request to stop a job that somebody had asked to stop before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRepeat {
    /// When.
    pub at: Timestamp,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    pub reason: String,
}

/// What came of passing a cancel on to whoever does the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelTry {
    /// Nothing was sent and nothing will be: the work cannot be stopped, and this is why.
    NotCancelable(String),
    /// Nothing could be sent, and this is why. It may be tried again.
    NotSent(String),
    /// It was sent.
    Sent(CancelSent),
}

/// A cancel that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelSent {
    /// To whom.
    pub to: CancelRecipient,
    /// What was answered, once it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<CancelAnswer>,
    /// How it was told: the status of the answer, or why there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
}

/// Who was sent a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelRecipient {
    /// An executor inside the daemon.
    Executor,
    /// The processes of the attempt: they were signalled.
    Process,
    /// Whoever pulled the job, by the answer to a heartbeat.
    Worker,
    /// The service that has the work, by a request.
    Service,
}

/// The newest try and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptCancelTry {
    /// When.
    pub at: Timestamp,
    /// What.
    pub tried: CancelTry,
}

impl CancelTry {
    /// It was sent, and there is no answer yet.
    pub const fn sent_to(to: CancelRecipient) -> Self {
        Self::Sent(CancelSent { to, answer: None, told: None })
    }

    /// Refuses what is over a limit.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::NotCancelable(why) | Self::NotSent(why) => {
                check_text("why no cancel was sent", why, MAX_NOTE_BYTES)
            }
            Self::Sent(sent) => sent.answer.as_ref().map_or(Ok(()), CancelAnswer::check).and_then(|()| {
                check_optional("how the cancel was answered", sent.told.as_deref(), MAX_LABEL_BYTES)
            }),
        }
    }
}

impl CancelRequest {
    /// Whether the job was over when it was asked for.
    pub const fn is_late(&self) -> bool {
        self.in_state.is_terminal()
    }

    /// Why the work cannot be stopped, if that is known.
    pub fn unavailable_because(&self) -> Option<&str> {
        match &self.tried.as_ref()?.tried {
            CancelTry::NotCancelable(why) => Some(why),
            CancelTry::NotSent(_) | CancelTry::Sent(_) => None,
        }
    }

    /// Whether whoever does the work was sent it.
    pub fn was_sent(&self) -> bool {
        self.tried.as_ref().is_some_and(|kept| matches!(kept.tried, CancelTry::Sent(_)))
    }

    /// The newest try counts; that nothing could be sent now does not undo what was sent before.
    pub(super) fn try_again(&mut self, tried: &CancelTry, at: Timestamp) {
        if !(matches!(tried, CancelTry::NotSent(_)) && self.was_sent()) {
            self.tried = Some(KeptCancelTry { at, tried: tried.clone() });
        }
    }

    /// The work has stopped, as whoever does it says.
    pub(super) fn confirm(&mut self, at: Timestamp) {
        if let Some(KeptCancelTry { at: tried_at, tried: CancelTry::Sent(sent) }) = &mut self.tried
            && sent.answer != Some(CancelAnswer::Cancelled)
        {
            sent.answer = Some(CancelAnswer::Cancelled);
            sent.told = None;
            *tried_at = at;
        }
    }

    pub(super) fn repeat(&mut self, by: Option<&str>, reason: &str, at: Timestamp) {
        let repeat = CancelRepeat { at, by: by.map(str::to_owned), reason: reason.to_owned() };
        self.repeats = self.repeats.saturating_add(1);
        keep_last(&mut self.repeated, repeat, KEPT_CANCEL_REPEATS);
    }
}

impl Job {
    /// When waiting for the confirmation of a cancel ends. Nothing bounds it for work that was never dispatched, which only its worker
    /// can stop, nor for work that cannot be stopped at all: both are over when they are over.
    pub fn cancel_limit_at(&self) -> Option<Timestamp> {
        let cancel = self.cancel.as_ref()?;
        let unmanaged = self.attempts.is_empty() && !planted(Bug::UnmanagedCancelTimedOut);
        // A job that waits for an answer is not given one any more: nothing but its time would end it.
        let paused = matches!(self.state, JobState::AwaitingInput | JobState::Blocked);
        let unstoppable =
            cancel.unavailable_because().is_some() && !paused && !planted(Bug::UncancelableTimedOut);
        cancel.limit_at.filter(|_| !unmanaged && !unstoppable)
    }

    /// Whether another request to stop it is only counted: enough of them are kept one by one.
    pub fn counts_cancel_repeat(&self) -> bool {
        self.cancel.as_ref().is_some_and(|cancel| cancel.repeated.len() >= KEPT_CANCEL_REPEATS)
    }

    /// Why what it is about to give to a service could not be stopped there, if it could not.
    pub(super) fn intent_not_cancelable(&self) -> Option<&str> {
        match self.state.phase() {
            Phase::Queued { .. } | Phase::Held(_) => self.intent.as_ref()?.not_cancelable.as_deref(),
            Phase::Waiting(_) | Phase::Ended(_) => None,
        }
    }
}

/// What an executor answered to a cancel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelAnswer {
    /// The work has stopped.
    Cancelled,
    /// Nothing of the work had begun, and nothing will.
    NeverStarted,
    /// It will stop; the work itself will say so.
    Accepted,
    /// It will not stop.
    Refused(String),
    /// Nobody answered.
    Unreachable,
}

impl CancelAnswer {
    /// Refuses what is over a limit.
    pub fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Refused(reason) => check_text("refusal of the cancel", reason, MAX_NOTE_BYTES),
            Self::Cancelled | Self::NeverStarted | Self::Accepted | Self::Unreachable => Ok(()),
        }
    }
}

/// In place of a service's own words after a purge. Newer records hold no such words.
const WORDS_DELETED: &str = "what it said was deleted by a purge";

impl CancelAnswer {
    fn forget_words(&mut self) {
        if let Self::Refused(words) = self {
            WORDS_DELETED.clone_into(words);
        }
    }
}

impl CancelTry {
    fn forget_words(&mut self) {
        match self {
            Self::Sent(CancelSent { answer: Some(answer), .. }) => answer.forget_words(),
            // A code of ours says nothing of the work.
            Self::NotSent(why) if why.contains(' ') => WORDS_DELETED.clone_into(why),
            Self::NotCancelable(_) | Self::NotSent(_) | Self::Sent(_) => {}
        }
    }
}

impl CancelRequest {
    /// After a purge: records of older versions may hold what a service said.
    pub(super) fn forget_words(&mut self) {
        for kept in &mut self.answers {
            kept.forget_words();
        }
        if let Some(kept) = &mut self.tried {
            kept.tried.forget_words();
        }
    }
}

/// An answer and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptCancelAnswer {
    /// When.
    pub at: Timestamp,
    /// What.
    pub answer: CancelAnswer,
    /// How it was told: the status of the answer, or why there was none. Short, and nothing that a service wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// What its service said with it: private, only the digest is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<BodyRef>,
}

impl KeptCancelAnswer {
    /// How an answer of our own begins: no service was asked.
    pub const NOT_ASKED: &str = "not asked";

    /// Takes out what a service said. Why nobody can be asked to stop the work is a word of ours and stays.
    pub(crate) fn forget_words(&mut self) {
        if self.told.as_deref() != Some(Self::NOT_ASKED) {
            self.answer.forget_words();
        }
    }

    /// Whether the answer is our own: no service was asked.
    pub fn was_not_asked(&self) -> bool {
        self.told.as_deref().is_some_and(|told| told.starts_with(Self::NOT_ASKED))
    }
}
