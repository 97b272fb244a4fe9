//! Work that is pulled: what whoever does it sends, and what comes back. Unknown keys are refused.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{JobStatus, JsonArray, JsonObject as Object};

/// Asks for a job to do. With nothing but an empty object: any job that names nobody.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PullJob {
    /// Unique per process that does the work, as the owner of its claims; made up if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The peer whose assigned jobs are meant; a token that is bound to a peer says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_id: Option<String>,
    /// Jobs of these lanes, at most 32; so many labels and folders too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<String>,
    /// Jobs for anyone with these labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Jobs in these folders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Also jobs that name nobody; they are meant if nothing else is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anything: Option<bool>,
    /// The circle; a token that is bound to one says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
    /// How long to wait for one, in seconds: at most 60, 30 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u64>,
}

/// A job to do, or none came.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PulledJob<'a> {
    /// The job; `null` if none came.
    pub job: Option<Handed<'a>>,
}

/// A job, and what its doer needs to know.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Handed<'a> {
    /// Its id.
    pub job_id: Cow<'a, str>,
    /// Comes with every heartbeat and report: a later attempt makes this one stale.
    pub attempt_id: Cow<'a, str>,
    /// 1 for the first.
    pub attempt_number: u32,
    /// The ask that it was delivered with, if it is assigned to a peer: acknowledging it confirms receipt and nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Cow<'a, str>>,
    /// Without a heartbeat by then it is given to someone else, or becomes unavailable.
    pub lease_expires_at: Cow<'a, str>,
    /// How often to be heard of.
    pub heartbeat_every_seconds: u64,
    /// For people.
    pub title: Cow<'a, str>,
    /// What to do, in words.
    pub prompt: Option<Cow<'a, str>>,
    /// What to do it with: any JSON.
    #[schema(value_type = utoipa::openapi::schema::Value)]
    pub input: Cow<'a, RawValue>,
    /// What was answered to its questions so far, oldest first.
    #[schema(value_type = Vec<utoipa::openapi::schema::Value>)]
    pub answers: Vec<Cow<'a, RawValue>>,
    /// What came of the work that it has left outside, if it goes on with that.
    #[schema(value_type = utoipa::openapi::schema::Value)]
    pub arrived: Option<Cow<'a, RawValue>>,
    /// Everything else.
    pub status: JobStatus<'a>,
}

/// The doer is alive, and perhaps says how far it is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatJob {
    /// The attempt.
    pub attempt_id: String,
    /// A free label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Replaces the progress object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Object>,
    /// One line for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_note: Option<String>,
}

/// What a heartbeat brings back.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer<'a> {
    /// Where the job is. While it is paused nobody need be heard of.
    pub state: Cow<'a, str>,
    /// The next heartbeat comes before this; `null` while the job is paused.
    pub lease_expires_at: Option<Cow<'a, str>>,
    /// Whether someone asked to stop it: stop, and report `cancelled`.
    pub cancel_requested: bool,
    /// Why.
    pub cancellation_reason: Option<Cow<'a, str>>,
    /// When it is taken for cancelled without that report.
    pub cancel_limit_at: Option<Cow<'a, str>>,
}

/// It is done.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteJob {
    /// The attempt.
    pub attempt_id: String,
    /// The result for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The result: any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<utoipa::openapi::schema::Value>)]
    pub result: Option<Box<RawValue>>,
    /// The list of artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub artifacts: Option<JsonArray>,
}

/// It cannot be done, or not now.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailJob {
    /// The attempt.
    pub attempt_id: String,
    /// Why, short and machine-readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The error: any JSON, best an object with `message`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<utoipa::openapi::schema::Value>)]
    pub error: Option<Box<RawValue>>,
    /// Whether another attempt may help; it is made only if the job has one left. Yes if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

/// It needs to know something first. The job waits for an answer; then it is handed out again, with the answer, as a new attempt.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskInput {
    /// The attempt.
    pub attempt_id: String,
    /// The question: any JSON.
    #[schema(value_type = utoipa::openapi::schema::Value)]
    pub question: Box<RawValue>,
}

/// It goes on at a service, which whoever does it has given the work to: the service is asked from here, for as long as it takes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeferJob {
    /// The attempt.
    pub attempt_id: String,
    /// The executor that knows how to ask: a connector of this host.
    pub executor: String,
    /// The service's own id of the work, as its answer to the submit had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<serde_json::Value>,
    /// The `Location` that it answered, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// What its end means: the job's own (`finish`, if left out), or that the job is handed out again with the result (`resume`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<After>,
    /// When to ask first, in seconds; within the host's bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
    /// A line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_hint: Option<String>,
}

/// What the end of work at a service means for its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// It is the end of the job.
    Finish,
    /// The job is handed out again, with the result.
    Resume,
}
