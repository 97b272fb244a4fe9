//! Asks: one peer says something to another and hears that it was received. The one file that decides about them.
//!
//! An ask is a thread of its own, not part of the ledger: acknowledging it never touches a job. A job that is delivered to its peer
//! opens one, and the end of that attempt closes it (`follow.rs`); the job is the source of its state, the ask only follows.

use crate::job::{Attempt, Holder, Job, Trigger};
use crate::limits::{MAX_ID_BYTES, MAX_LABEL_BYTES, check_optional, check_text};
use crate::words::words;
use crate::{Digest, JobId, Refusal, Timestamp};

/// What one ask may say.
pub const MAX_ASK_BYTES: usize = 16_384;
/// Open asks that one peer may have before it.
pub const MAX_OPEN_ASKS: usize = 1_000;
/// Asks that one list holds.
pub const MAX_ASKS_LISTED: usize = 100;
/// How long an ask stays open when nothing is said: a day.
pub const DEFAULT_TTL_SECONDS: u64 = 86_400;
/// The longest: a week.
pub const MAX_TTL_SECONDS: u64 = 7 * 86_400;
/// Asks that are deleted when others are written.
pub const MAX_FORGOTTEN_ASKS: usize = 100;
/// An ask can be repeated under its key for this long: a day.
const KEPT_SECONDS: u64 = 86_400;
/// The ask of an attempt that is over is kept for this long: an hour.
const KEPT_AFTER_ATTEMPT_SECONDS: u64 = 3_600;

/// Something that one peer was told or asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The correlation id: `ask-` and hex.
    pub id: String,
    /// The circle that it is said in.
    pub circle: Option<String>,
    /// Who asks; none if it is no peer.
    pub from_peer: Option<String>,
    /// Who is asked, by its id.
    pub to_peer: String,
    /// What.
    pub text: String,
    /// The job that it is about.
    pub job_id: Option<JobId>,
    /// The ask that it replies to.
    pub reply_to: Option<String>,
    /// The token that asked, or `longhaul`.
    pub asked_by: String,
    /// The digest of the request: a repeat is told from another.
    pub request_sha256: Digest,
    /// When it was asked.
    pub created_at: Timestamp,
    /// When it is closed by itself.
    pub expires_at: Timestamp,
    /// How it was closed, if somebody did.
    pub closed: Option<Closing>,
}

/// How an ask was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: CloseReason,
    /// What was answered.
    pub message: Option<String>,
    /// Who did, if somebody did.
    pub by: Option<String>,
}

words! {
    /// Why an ask was closed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CloseReason {
        /// Received.
        Ack = "ack",
        /// Received, and answered.
        AckWithMessage = "ack_with_msg",
        /// Answered by an ask.
        ReplyTo = "reply_to",
        /// The attempt that it told of is over.
        FireCompleted = "fire_completed",
        /// Its time was over.
        Expired = "expired",
    }
}

/// What happens to an ask together with other things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskChange {
    /// It is asked.
    Opened(Box<Ask>),
    /// It is closed, if it is open.
    Closed {
        /// Which.
        id: String,
        /// How.
        closing: Closing,
    },
}

/// A message came for an ask that is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskClosed(pub Closing);

/// Whoever is asked has received it; none if it was closed before. A word on a closed ask reaches nobody, and is refused.
pub fn acknowledge(
    ask: &Ask,
    message: Option<String>,
    by: Option<&str>,
    now: Timestamp,
) -> Result<Option<Closing>, AskClosed> {
    match (ask.closing(now), message) {
        (None, message) => {
            let reason = if message.is_some() { CloseReason::AckWithMessage } else { CloseReason::Ack };
            Ok(Some(Closing { at: now, reason, message, by: by.map(str::to_owned) }))
        }
        (Some(_), None) => Ok(None),
        (Some(closing), Some(_)) => Err(AskClosed(closing)),
    }
}

/// Whoever is asked answers with an ask of its own: that closes this one.
pub fn reply(ask: &Ask, text: &str, now: Timestamp) -> Closing {
    let (message, by) = (Some(text.to_owned()), Some(ask.to_peer.clone()));
    Closing { at: now, reason: CloseReason::ReplyTo, message, by }
}

/// The ask that an attempt was delivered with; none if no peer was asked.
pub fn correlation_id(job: &Job, attempt: &Attempt) -> Option<String> {
    // Whoever asks to run it makes the attempt itself: then nobody is handed anything.
    let is_handed_out = !matches!(attempt.trigger, Trigger::Run | Trigger::Retry);
    let is_asked = job.spec.executor.is_none() && job.spec.assigned_peer_id.is_some() && is_handed_out;
    is_asked.then(|| of_attempt(job, attempt))
}

/// Everyone in the circle sees the id of the ask, so it does not tell that of the attempt. An attempt without a named holder is of a
/// version that did not care, and its ask is found under the id that it was opened with.
fn of_attempt(job: &Job, attempt: &Attempt) -> String {
    fn bare<'a>(id: &'a str, prefix: &str) -> &'a str {
        id.strip_prefix(prefix).unwrap_or(id)
    }
    match attempt.holder {
        Holder::Bearer => format!("ask-{}", bare(attempt.id.as_str(), "attempt-")),
        Holder::Daemon | Holder::Caller(_) => {
            format!("ask-{}-{}", bare(job.id.as_str(), "work-"), attempt.number)
        }
    }
}

impl Ask {
    /// How it is closed by now.
    pub fn closing(&self, now: Timestamp) -> Option<Closing> {
        let expired =
            || Closing { at: self.expires_at, reason: CloseReason::Expired, message: None, by: None };
        self.closed.clone().or_else(|| (now >= self.expires_at).then(expired))
    }

    /// When it may be deleted, unless its closing says otherwise.
    pub fn forget_at(&self) -> Timestamp {
        self.expires_at.max(self.created_at.plus_seconds(KEPT_SECONDS))
    }

    /// Refuses what is over its limit.
    pub fn check(&self) -> Result<(), Refusal> {
        check_text("correlation_id", &self.id, MAX_ID_BYTES)?;
        check_text("text", &self.text, MAX_ASK_BYTES)?;
        check_text("to_peer", &self.to_peer, MAX_ID_BYTES)?;
        check_optional("circle", self.circle.as_deref(), MAX_LABEL_BYTES)?;
        check_optional("from_peer", self.from_peer.as_deref(), MAX_ID_BYTES)?;
        check_optional("reply_to", self.reply_to.as_deref(), MAX_ID_BYTES)?;
        self.closed.as_ref().map_or(Ok(()), Closing::check)
    }
}

impl Closing {
    /// When an ask that was closed so may be deleted; none if that stays as it is.
    pub fn forget_at(&self) -> Option<Timestamp> {
        match self.reason {
            CloseReason::FireCompleted => Some(self.at.plus_seconds(KEPT_AFTER_ATTEMPT_SECONDS)),
            CloseReason::Ack | CloseReason::AckWithMessage | CloseReason::ReplyTo | CloseReason::Expired => {
                None
            }
        }
    }

    /// Refuses what is over its limit.
    pub fn check(&self) -> Result<(), Refusal> {
        check_optional("message", self.message.as_deref(), MAX_ASK_BYTES)?;
        check_optional("by", self.by.as_deref(), MAX_LABEL_BYTES)
    }
}
