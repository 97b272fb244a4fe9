//! The state of a job: where it is in its life, and what the record remembers.

use serde::{Deserialize, Serialize};

use super::attempt::{Attempt, Trigger};
use super::cancel::CancelRequest;
use super::command::Retryable;
use super::details::{AttemptLimit, Note, ResultRefs};
use super::fact::StaleReport;
use super::hold::Pause;
use super::holder::Holder;
use super::intent::Intent;
use super::spec::{JobSpec, NewJob};
use crate::body::BodyRef;
use crate::planted::{Bug, planted};
use crate::policy::JobLife;
use crate::time::earliest;
use crate::words::words;
use crate::{JobId, Json, OperationId, PULLED_ATTEMPTS, RetryPolicy, Timestamp};

/// Reasons of a job that failed because the time of its attempt was over: what the host says, what executors say, and what a plugin's is called.
const TIMED_OUT: [&str; 3] = ["timed_out", "attempt_timed_out", "timeout"];

/// Where a job is in its life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Accepted and stored, no executor reached; not taken before `due_at`.
    Queued {
        /// When it may be taken.
        due_at: Timestamp,
    },
    /// Taken by a runner under a lease; the executor has not answered.
    Dispatching,
    /// Handed over; execution not reported yet.
    Delivered,
    /// The executor works.
    Running,
    /// Paused for a person, a peer, an approval, a credential or other input.
    AwaitingInput,
    /// Going on outside, under an operation that we poll.
    AwaitingExternal {
        /// The open operation.
        operation: OperationId,
        /// What its result means for the job.
        then: AfterExternal,
    },
    /// Needs a new decision or dependency, beyond ordinary input.
    Blocked,
    /// Done.
    Completed,
    /// Over without success.
    Failed,
    /// Stopped on request.
    Cancelled,
    /// Past its deadline or lifetime.
    Expired,
    /// The executor or what it needs is missing.
    Unavailable {
        /// Whether a late report of the same attempt may still land.
        lease_lost: bool,
    },
}

/// What the result of an operation means for its job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterExternal {
    /// It is the job's result.
    #[default]
    Finish,
    /// The executor goes on with it.
    Resume,
}

words! {
    /// The name of a state: the word in columns, on the wire and in messages.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[allow(missing_docs, reason = "the words of `JobState`")]
    pub enum JobStateName {
        Queued = "queued",
        Dispatching = "dispatching",
        Delivered = "delivered",
        Running = "running",
        AwaitingInput = "awaiting_input",
        AwaitingExternal = "awaiting_external",
        Blocked = "blocked",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Expired = "expired",
        Unavailable = "unavailable",
    }
}

/// One durable piece of tracked work, folded from its facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    #[serde(skip)]
    pub id: JobId,
    /// What was asked for.
    pub spec: JobSpec,
    /// Where it is.
    pub state: JobState,
    /// Why it is there: short and machine-readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    /// A free label set by the executor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The newest progress object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Json>,
    /// The newest notes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// How many attempts were ever made.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub attempt_count: u32,
    /// The newest attempts, oldest first; the last one is current while it has not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// The executor must be called again with what has come in.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub resume_pending: bool,
    /// The request to a service of which nobody knows yet what came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Box<Intent>>,
    /// The request to stop it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<CancelRequest>,
    /// The pause that holds it while it is queued, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Box<Pause>>,
    /// The result so far.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub result: ResultRefs,
    /// The bodies given at create and since, newest of each name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<BodyRef>,
    /// What was answered to the current attempt, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<BodyRef>,
    /// Whether it failed although another attempt might have helped: none is left.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub attempts_used_up: bool,
    /// The limit of ours that ended its last attempt, if the job ended by that.
    #[serde(rename = "time_limit", default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<AttemptLimit>,
    /// Reports of attempts that were not current any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<StaleReport>,
    /// How many reports of attempts that were not current ever came; only the first of them are kept as evidence.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub stale_reports: u32,
    /// Whether its bodies were deleted on request, and none has come since.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub purged: bool,
    /// When its bodies were last deleted on request. Such a job is not done again: what it was asked to do is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purged_at: Option<Timestamp>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When anything last happened to it.
    pub updated_at: Timestamp,
    /// When it reached its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

impl Job {
    /// The job right after it was accepted.
    pub fn new(id: JobId, new: &NewJob, at: Timestamp) -> Self {
        Self {
            id,
            spec: new.spec.clone(),
            state: JobState::Queued { due_at: new.due_at.unwrap_or(at) },
            state_reason: None,
            phase: None,
            progress: None,
            notes: Vec::new(),
            attempt_count: 0,
            attempts: Vec::new(),
            resume_pending: false,
            intent: None,
            cancel: None,
            paused: None,
            result: ResultRefs::default(),
            bodies: new.bodies.clone(),
            answers: Vec::new(),
            attempts_used_up: false,
            limit: None,
            evidence: Vec::new(),
            stale_reports: 0,
            purged: false,
            purged_at: None,
            created_at: at,
            updated_at: at,
            completed_at: None,
        }
    }

    /// The attempt that holds the job or held it last. Once there is one, the job is fenced for ever.
    pub fn last_attempt(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// The peer that does it or did it last, once one has it in hand; until then the one that its creator named.
    pub fn owner_peer(&self) -> Option<&str> {
        let doer = self.attempts.iter().rev().find_map(|attempt| match &attempt.holder {
            Holder::Caller(caller) => caller.peer.as_deref(),
            Holder::Bearer | Holder::Daemon => None,
        });
        let has_it = self.last_attempt().is_some_and(|attempt| attempt.delivered_at.is_some());
        let asked = self.spec.assigned_peer_id.as_deref().filter(|_| has_it && self.spec.executor.is_none());
        doer.or(asked).or(self.spec.owner_peer_id.as_deref())
    }

    /// Whether it failed because the time of its attempt was over, whoever limited it.
    pub fn ran_out_of_time(&self) -> bool {
        let over = |reason: &str| TIMED_OUT.contains(&reason);
        self.state == JobState::Failed && self.state_reason.as_deref().is_some_and(over)
    }

    /// When it expires: the earlier of deadline and lifetime.
    pub fn expires_at(&self) -> Option<Timestamp> {
        earliest(self.spec.deadline_at, self.spec.expires_at)
    }

    /// What bounds its life.
    pub fn life(&self) -> JobLife {
        match (self.spec.expires_by, self.expires_at()) {
            (Some(_), _) => JobLife::OfHandle,
            (None, Some(_)) => JobLife::Bounded,
            (None, None) => JobLife::Unbounded,
        }
    }

    /// Whether the job fails with its current attempt, if that fails: nothing follows by itself.
    pub fn fails_for_good(&self, retryable: Retryable) -> bool {
        match retryable {
            Retryable::Yes | Retryable::NotBefore(_) => {
                !self.may_retry_by_itself() || self.attempts.is_empty()
            }
            Retryable::No => true,
        }
    }

    /// Whether another attempt may follow by itself: attempts left, and nobody asked to stop. One that goes on after a pause was
    /// no new try.
    pub(super) fn may_retry_by_itself(&self) -> bool {
        let retry = self.spec.retry;
        if planted(Bug::ReportedFailureHandedOutAgain) {
            let max_attempts = retry.max_attempts.max(PULLED_ATTEMPTS);
            return self.has_tries_left(RetryPolicy { max_attempts, ..retry });
        }
        self.has_tries_left(retry)
    }

    /// Whether another attempt may follow by itself when whoever made the last one was lost.
    pub(super) fn may_follow_a_lost_worker(&self) -> bool {
        self.has_tries_left(self.retry_after_loss())
    }

    /// How often it is tried when workers are lost. Pulled work of which its creator has not said how often is handed out again: its
    /// worker may be a laptop that was closed. What that worker reports is final all the same.
    pub fn retry_after_loss(&self) -> RetryPolicy {
        let said = self.spec.executor.is_some() || self.spec.retry_requested;
        let retry = self.spec.retry;
        if said || retry.max_attempts != RetryPolicy::ONCE.max_attempts {
            return retry;
        }
        RetryPolicy { max_attempts: PULLED_ATTEMPTS, ..retry }
    }

    /// Whether the last attempt ended because its worker was lost.
    pub(super) fn was_lost_last(&self) -> bool {
        matches!(self.state, JobState::Queued { .. }) && self.state_reason.as_deref() == Some("lease_lost")
    }

    /// The policy by which another attempt follows the last one.
    pub(super) fn tries_of_last(&self) -> RetryPolicy {
        if self.was_lost_last() { self.retry_after_loss() } else { self.spec.retry }
    }

    fn has_tries_left(&self, retry: RetryPolicy) -> bool {
        let wanted = self.cancel.is_none() || planted(Bug::RetriedAfterCancel);
        wanted && retry.attempts_left(self.tries())
    }

    /// Whether another attempt would follow such a failure if one were left.
    pub(super) fn used_its_last_attempt(&self, retryable: Retryable) -> bool {
        match retryable {
            // A failure that a worker reports is final by itself if only lost workers are followed.
            Retryable::Yes | Retryable::NotBefore(_) => {
                self.retry_after_loss() == self.spec.retry && self.has_used_up(self.spec.retry)
            }
            Retryable::No => false,
        }
    }

    /// Whether another attempt would follow the loss of a worker if one were left.
    pub(super) fn used_its_last_worker(&self) -> bool {
        self.has_used_up(self.retry_after_loss())
    }

    fn has_used_up(&self, retry: RetryPolicy) -> bool {
        self.cancel.is_none() && !self.attempts.is_empty() && !retry.attempts_left(self.tries())
    }

    /// Attempts that were new tries.
    pub(crate) fn tries(&self) -> u32 {
        let continued = self.attempts.iter().filter(|attempt| attempt.trigger == Trigger::Continued).count();
        self.attempt_count.saturating_sub(u32::try_from(continued).unwrap_or(u32::MAX))
    }
}

impl JobState {
    /// The name of this state.
    pub const fn name(&self) -> JobStateName {
        match self {
            Self::Queued { .. } => JobStateName::Queued,
            Self::Dispatching => JobStateName::Dispatching,
            Self::Delivered => JobStateName::Delivered,
            Self::Running => JobStateName::Running,
            Self::AwaitingInput => JobStateName::AwaitingInput,
            Self::AwaitingExternal { .. } => JobStateName::AwaitingExternal,
            Self::Blocked => JobStateName::Blocked,
            Self::Completed => JobStateName::Completed,
            Self::Failed => JobStateName::Failed,
            Self::Cancelled => JobStateName::Cancelled,
            Self::Expired => JobStateName::Expired,
            Self::Unavailable { .. } => JobStateName::Unavailable,
        }
    }
}

impl JobStateName {
    /// Whether a job in this state is over.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled | Self::Expired | Self::Unavailable => true,
            Self::Queued
            | Self::Dispatching
            | Self::Delivered
            | Self::Running
            | Self::AwaitingInput
            | Self::AwaitingExternal
            | Self::Blocked => false,
        }
    }
}
