//! Attempts: one dispatch of a job to an executor each. The attempt's id is the fence of every report on it.

use serde::{Deserialize, Serialize};

use super::details::ResultRefs;
use super::holder::Holder;
use super::state::JobStateName;
use crate::{AttemptId, OwnerId, Timestamp};

/// One dispatch of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The fence.
    pub id: AttemptId,
    /// 1 for the first; strictly rising.
    pub number: u32,
    /// Who took it.
    pub owner: OwnerId,
    /// To whom it was handed.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub holder: Holder,
    /// What made it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub trigger: Trigger,
    /// When it was taken.
    pub started_at: Timestamp,
    /// By how much store time has jumped since, without that time having passed.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub moved_micros: i64,
    /// When whoever does it had it in hand, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    /// How it ended, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<AttemptEnd>,
    /// What was seen to become of the executor that had it, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ObservedRelease>,
}

impl Attempt {
    /// Whether the job went back to the queue from it, to be tried again by another.
    pub fn was_sent_back(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.state == JobStateName::Queued)
    }
}

/// What became of whoever did an attempt when it was over: an executor of the daemon, or the work at a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// It has ended: nothing of it runs any more, as was seen, or as its service said.
    Ended,
    /// It goes on, for other jobs.
    Persists,
}

/// What was seen to become of an executor, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedRelease {
    /// When.
    pub at: Timestamp,
    /// What.
    pub release: Release,
}

/// What made an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A worker found it due, or a peer pulled it.
    #[default]
    Automatic,
    /// Someone asked to run it now.
    Run,
    /// Someone asked to try it again.
    Retry,
    /// What it waited for has come, and someone who pulls goes on with it. Never asked for: the rules say so of pulled work.
    Continued,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// When.
    pub at: Timestamp,
    /// The state that its end put the job in; `queued` if the job is tried again by itself.
    pub state: JobStateName,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it produced. Stays here when a later attempt replaces the job's result.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub result: ResultRefs,
}
