//! Events: messages that may start pipelines, and what came of each. Unknown keys are refused.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::JsonObject as Object;

/// Publishes an event. It is on stable storage when this is answered; what it starts is decided right after.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishEvent {
    /// Its type, 1 to 256 characters without control characters: pipelines listen to exactly one.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it says, at most 256 KiB; an empty object if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
    /// What names the same thing: while its work goes on, or was done lately, the same key starts it no second time. At most 512 bytes,
    /// where every character counts as much as the widest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    /// Carried with everything that follows from it, at most 2 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<Object>,
    /// The circle that sees it and all that follows; a token that is bound to one says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
}

/// The event is written down.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventPublished {
    /// What it is known by.
    pub event_id: String,
    /// `waiting`: nobody has looked at it yet.
    pub status: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The circle that sees it.
    pub circle: Option<String>,
    /// When it was written down.
    pub published_at: String,
}

/// An event, and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// What it is known by.
    pub event_id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `waiting`, `routed`, `declined` (everyone who listens had a reason not to begin), `no_route` (nobody listens) or `processed` (whoever
    /// had claimed it has settled it).
    pub status: String,
    /// Where it comes from.
    pub origin: EventOrigin,
    /// The executor that emitted it, if one did.
    pub source: Option<String>,
    /// What names the same thing.
    pub dedupe_key: Option<String>,
    /// The circle that sees it.
    pub circle: Option<String>,
    /// How many events led to it.
    pub depth: u32,
    /// Carried with everything that follows from it.
    pub correlation: Option<Object>,
    /// When it was written down.
    pub published_at: String,
    /// When it was decided what it starts.
    pub settled_at: Option<String>,
    /// What came of it for every pipeline that listens to its type.
    pub routes: Vec<EventRoute>,
    /// Whether the run of the job that emitted it went on with it.
    pub moved_its_run: bool,
    /// Who settles it: `router`, or `claimants` if the operator says so of its type.
    pub settled_by: String,
    /// What its claimant made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processed: Option<EventProcessed>,
    /// What it says; left out of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
}

/// What the holder of its claim made of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventProcessed {
    /// The terminal reason.
    pub reason: String,
    /// Who held the claim.
    pub owner_id: String,
    /// The workorder that was made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_order_id: Option<String>,
}

/// Where an event comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventOrigin {
    /// `published`, `asked` (someone asked for one pipeline by its name), `webhook`, `emitted` or `job_ended`.
    pub kind: String,
    /// Who published it, or asked.
    pub by: Option<String>,
    /// The pipeline that was asked for.
    pub pipeline: Option<String>,
    /// The endpoint of the webhook.
    pub endpoint: Option<String>,
    /// The job that emitted it, or ended.
    pub job_id: Option<String>,
}

/// What came of an event for one pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventRoute {
    /// The pipeline.
    pub pipeline: String,
    /// `started`, `duplicate`, `other_source`, `predicate_false`, `predicate_invalid`, `depth_exceeded` or `invalid`.
    pub disposition: String,
    /// The run that it started, or that it is a duplicate of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Why not, where the word does not say all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One event.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventAnswer {
    /// The event.
    pub event: Event,
}

/// Events, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// The events, without what they say. A page may be short: only one without `next_cursor` is the last.
    pub events: Vec<Event>,
    /// Asks for the next page.
    pub next_cursor: Option<String>,
}
