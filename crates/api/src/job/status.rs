//! The status of a job: 35 keys, always all present; a summary leaves out those that are large.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue as Object;
use utoipa::ToSchema;

/// Where a job is. In a summary, and only there, `progress`, `progress_events`, `protocol_cancel`, `request`, `provenance`, `runner`
/// and `links` are left out.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobStatus<'a> {
    /// Its id.
    pub job_id: Cow<'a, str>,
    /// The same id.
    pub work_id: Cow<'a, str>,
    /// For people.
    pub title: Cow<'a, str>,
    /// A free label.
    pub kind: Cow<'a, str>,
    /// queued, dispatching, delivered, running, `awaiting_input`, `awaiting_external`, blocked, completed, failed, cancelled, expired or unavailable.
    pub state: Cow<'a, str>,
    /// Why it is there: short and machine-readable.
    pub state_reason: Option<Cow<'a, str>>,
    /// A free label of the executor.
    pub phase: Option<Cow<'a, str>>,
    /// The newest progress object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Cow<'a, Object>>,
    /// The newest notes, oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_events: Option<Vec<ProgressEvent<'a>>>,
    /// Who owns it.
    pub owner_peer_id: Option<Cow<'a, str>>,
    /// The peer that shall do it.
    pub assigned_peer_id: Option<Cow<'a, str>>,
    /// The durable workstream that it belongs to.
    pub repowire_session_id: Option<Cow<'a, str>>,
    /// What joins it to other work.
    pub correlation_id: Option<Cow<'a, str>>,
    /// Who may see it.
    pub circle: Option<Cow<'a, str>>,
    /// Who created it.
    pub created_by_peer_id: Option<Cow<'a, str>>,
    /// What made it.
    pub source_kind: Option<Cow<'a, str>>,
    /// Which one.
    pub source_id: Option<Cow<'a, str>>,
    /// A free label of the creator.
    pub scope: Option<Cow<'a, str>>,
    /// Who may see it: `circle` or `private`.
    pub visibility: Cow<'a, str>,
    /// When it was accepted.
    pub created_at: Cow<'a, str>,
    /// When anything last happened to it.
    pub updated_at: Cow<'a, str>,
    /// When its result is of no use any more.
    pub deadline_at: Option<Cow<'a, str>>,
    /// The end of its lifetime.
    pub expires_at: Option<Cow<'a, str>>,
    /// The result for people.
    pub result_summary: Option<Cow<'a, str>>,
    /// Whether someone asked to stop it.
    pub cancel_requested: bool,
    /// When.
    pub cancel_requested_at: Option<Cow<'a, str>>,
    /// Who.
    pub cancel_requested_by_peer_id: Option<Cow<'a, str>>,
    /// Why.
    pub cancellation_reason: Option<Cow<'a, str>>,
    /// What became of telling the executor to stop. `null` if nobody had to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[allow(clippy::option_option, reason = "absent in a summary, null when there is none")]
    pub protocol_cancel: Option<Option<ProtocolCancel<'a>>>,
    /// The creator's request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Cow<'a, Object>>,
    /// Where it came from, and the runner's record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Cow<'a, Object>>,
    /// `request.execution`; in a summary only target, delivery, `process_scope` and continuity.
    pub execution: Cow<'a, Object>,
    /// `provenance.runner`, or `{}` while there was no attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<Cow<'a, Object>>,
    /// Not before this time, as it was sent.
    pub due_at: Option<Cow<'a, str>>,
    /// `provenance.links`, or `{}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Cow<'a, Object>>,
}

/// One note of a job's history.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProgressEvent<'a> {
    /// When.
    pub at: Cow<'a, str>,
    /// What.
    pub note: Cow<'a, str>,
    /// The state that the report put the job in.
    pub state: Cow<'a, str>,
    /// The phase sent with it, else the one before.
    pub phase: Option<Cow<'a, str>>,
}

/// What became of telling an executor to stop.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProtocolCancel<'a> {
    /// Whether anything was sent, or tried to be.
    pub attempted: bool,
    /// sent, unavailable, failed or timeout.
    pub status: Cow<'a, str>,
    /// Why, short.
    pub reason: Cow<'a, str>,
    /// The peer that it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_id: Option<Cow<'a, str>>,
    /// What the executor said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// Why nothing was sent or nobody answered, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Cow<'a, str>>,
    /// When it was sent, answered, or found out that nothing can be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Cow<'a, str>>,
}

/// The runner's record of a job that was dispatched.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Runner<'a> {
    /// How many attempts were ever made.
    pub attempt_count: u32,
    /// The newest ones, oldest first.
    pub attempts: Vec<Attempt<'a>>,
    /// The one whose reports count. Its worker sees the id that it reports with, everyone else an alias (`attempt-ref-...`).
    pub current_attempt_id: Cow<'a, str>,
    /// Who took it.
    pub runner_owner_id: Cow<'a, str>,
    /// When.
    pub acquired_at: Cow<'a, str>,
    /// Until when, unless it is renewed; `null` when no lease governs it.
    pub lease_until: Option<Cow<'a, str>>,
    /// Why the last attempt that did not succeed ended.
    pub last_error: Option<AttemptError<'a>>,
    /// What became of whoever did it, once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_result: Option<ReleaseResult<'a>>,
    /// The work outside that it waits for; left out if it waits for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Outside<'a>>,
    /// How many reports of attempts that were not current any more have come; the first of them are facts of their own.
    #[serde(default)]
    pub stale_reports: u32,
}

/// Work that goes on outside, as its service last told it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Outside<'a> {
    /// The handle on it.
    pub operation_id: Cow<'a, str>,
    /// Whose service has it: the name of the executor.
    pub service: Cow<'a, str>,
    /// pending, running, or how it ended.
    pub status: Cow<'a, str>,
    /// What the service says for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_hint: Option<Cow<'a, str>>,
    /// How often the service was asked.
    pub polls: u32,
    /// When it took the work.
    pub dispatched_at: Cow<'a, str>,
    /// When it was last asked.
    pub last_polled_at: Option<Cow<'a, str>>,
    /// When it is asked next; `null` once it is over.
    pub next_poll_at: Option<Cow<'a, str>>,
    /// When the host gives it up.
    pub expires_at: Cow<'a, str>,
    /// The service's own id of the work, if its executor tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_job_id: Option<Cow<'a, str>>,
    /// `volatile` if it is given up when its daemon is gone; left out if it outlives that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Cow<'a, str>>,
    /// Seconds between questions, as granted.
    #[serde(default)]
    pub interval_seconds: u32,
    /// What its service asked for and was not granted; left out if it was granted everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clamps: Vec<crate::Clamp>,
    /// Why the last question failed; left out if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<OutsideError<'a>>,
}

/// A question to a service that failed; that says nothing about the work.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OutsideError<'a> {
    /// Short and machine-readable.
    pub code: Cow<'a, str>,
    /// For people.
    pub message: Cow<'a, str>,
    /// Failed questions in a row.
    pub in_row: u32,
}

/// One dispatch of a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Attempt<'a> {
    /// The fence of every report, for the worker to whom it was handed; for everyone else an alias (`attempt-ref-...`).
    pub attempt_id: Cow<'a, str>,
    /// 1 for the first.
    pub number: u32,
    /// automatic, run or retry.
    pub trigger: Cow<'a, str>,
    /// The job's state while it goes on; then the state that its end put the job in.
    pub status: Cow<'a, str>,
    /// Its phase while it goes on; then why it ended.
    pub phase: Option<Cow<'a, str>>,
    /// When it was taken.
    pub started_at: Cow<'a, str>,
    /// When it ended.
    pub completed_at: Option<Cow<'a, str>>,
    /// Who took it.
    pub runner_owner_id: Cow<'a, str>,
    /// Until when, unless it is renewed; only of the current one.
    pub lease_until: Option<Cow<'a, str>>,
    /// The peer that was to do it.
    pub assigned_peer_id: Option<Cow<'a, str>>,
    /// The ask that it was delivered with, if a peer was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Cow<'a, str>>,
    /// Its result for people.
    pub result_summary: Option<Cow<'a, str>>,
    /// Who does it or did it: the executor, or the peer that has it.
    #[serde(default)]
    pub executor: Option<Cow<'a, str>>,
    /// pending, delivered or failed: whether whoever does it had it in hand.
    #[serde(default)]
    pub delivery_state: Cow<'a, str>,
    /// When whoever does it had it in hand.
    #[serde(default)]
    pub delivered_at: Option<Cow<'a, str>>,
    /// Why it did not succeed; an empty object if it did, or goes on.
    #[serde(default)]
    pub error: AttemptError<'a>,
}

/// Why an attempt did not succeed. What was said besides is the error of the result.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AttemptError<'a> {
    /// Short and machine-readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The state that its end put the job in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Cow<'a, str>>,
    /// The digest of the error object that came with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Cow<'a, str>>,
    /// The attempt, where it is told apart from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// What became of the executor of a job that is over.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReleaseResult<'a> {
    /// released, skipped or failed.
    pub status: Cow<'a, str>,
    /// Why: `attempt_ended`, `executor_persists`, `no_release_handle`, or `not_confirmed` while nobody has seen what became of it.
    pub reason: Cow<'a, str>,
    /// When it was seen to have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_at: Option<Cow<'a, str>>,
}
