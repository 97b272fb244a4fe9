//! What may be ordered of an event.

use serde::{Deserialize, Serialize};

use super::{
    DEFAULT_MAX_DEPTH, MAX_CORRELATION_BYTES, MAX_DEDUPE_KEY_BYTES, MAX_PAYLOAD_BYTES, MAX_TYPE_BYTES,
};
use crate::body::{BodyName, BodyRef};
use crate::limits::{
    MAX_ID_BYTES, MAX_LABEL_BYTES, check_indexed, check_optional, check_optional_bytes, check_text,
};
use crate::run::NewRun;
use crate::{JobId, Json, Refusal, RunId};

use super::fact::Disposition;

/// An order to an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventCommand {
    /// Write it down.
    Publish(Box<NewEvent>),
    /// Say what came of it for every pipeline that listens, and start what it starts.
    Settle {
        /// Per pipeline.
        routes: Vec<Route>,
        /// Whether the run of the job that emitted it goes on with it.
        moves_its_run: bool,
    },
    /// Whoever has claimed it says that it is processed, and why nothing more follows. Only under the claim.
    Process(Processed),
    /// Move what measures passed time: store time has jumped by a step of the clock.
    MoveTimers {
        /// By so many microseconds; negative if time went back.
        by_micros: i64,
    },
    /// It was kept long enough.
    Retire,
}

/// A new event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewEvent {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its payload: an object.
    pub payload: BodyRef,
    /// Where it comes from.
    pub origin: Origin,
    /// Who emitted it: the executor, or whoever published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What names the same thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    /// Who may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
    /// How many events led to it: 0 for one that came from outside.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub depth: u32,
    /// How deep its chain may go; as far as it likes if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// What is carried with everything that follows from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<Json>,
    /// Who settles it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub settled_by: Settler,
}

/// Who settles an event, as the operator says of its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settler {
    /// The daemon: it starts every pipeline that listens.
    #[default]
    Router,
    /// Whoever claims it from outside. No pipeline listens to it.
    Claimants,
}

/// What the holder of a claim has made of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processed {
    /// The terminal reason: a short word of the claimant's own.
    pub reason: String,
    /// Who held the claim.
    pub owner_id: String,
    /// The workorder that it made of the event, if it made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_order_id: Option<String>,
}

impl Processed {
    /// Refuses what is over a limit.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.reason.is_empty() {
            return Err(Refusal::InvalidPolicy { field: "reason" });
        }
        check_text("reason", &self.reason, MAX_LABEL_BYTES)?;
        check_text("owner_id", &self.owner_id, MAX_ID_BYTES)?;
        check_optional("work_order_id", self.work_order_id.as_deref(), MAX_ID_BYTES)
    }
}

/// Where an event comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Somebody published it.
    Published {
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Somebody asked for one pipeline by its name: nobody else listens to it.
    Asked {
        /// Which.
        pipeline: String,
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A webhook came in.
    Webhook {
        /// The name of the endpoint.
        endpoint: String,
    },
    /// A job emitted it.
    Emitted {
        /// Which job.
        job_id: JobId,
        /// The how manieth of its events, from 0.
        ordinal: u32,
    },
    /// A job has ended.
    JobEnded {
        /// Which job.
        job_id: JobId,
    },
}

/// What a pipeline that listens does with an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The pipeline.
    pub pipeline: String,
    /// What it does.
    pub answer: RouteAnswer,
}

/// Whether an event starts a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteAnswer {
    /// It does.
    Start {
        /// The run.
        run_id: RunId,
        /// What it begins with.
        run: Box<NewRun>,
    },
    /// It does not, for this reason.
    Not(Disposition),
}

impl NewEvent {
    /// From outside, in nobody's circle, about nothing else.
    pub fn new(kind: &str, payload: BodyRef, origin: Origin) -> Self {
        Self {
            kind: kind.to_owned(),
            payload,
            origin,
            source: None,
            dedupe_key: None,
            circle: None,
            depth: 0,
            max_depth: None,
            correlation: None,
            settled_by: Settler::Router,
        }
    }

    /// Refuses what is over a limit.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.kind.is_empty() || self.kind.chars().any(char::is_control) {
            return Err(Refusal::InvalidPolicy { field: "type" });
        }
        check_text("type", &self.kind, MAX_TYPE_BYTES)?;
        check_optional("source", self.source.as_deref(), MAX_LABEL_BYTES)?;
        check_indexed("dedupe_key", self.dedupe_key.as_deref(), MAX_DEDUPE_KEY_BYTES)?;
        check_optional("circle", self.circle.as_deref(), MAX_LABEL_BYTES)?;
        let correlation = self.correlation.as_ref().map(Json::as_str);
        check_optional_bytes("correlation", correlation, MAX_CORRELATION_BYTES)?;
        if self.payload.size > MAX_PAYLOAD_BYTES as u64 {
            return Err(Refusal::TooLarge { what: "payload", limit: MAX_PAYLOAD_BYTES });
        }
        self.payload.check_named(BodyName::Payload)
    }

    /// How deep the chain may go from here on, if what it starts says so many hops, 0 for any. What was said at the beginning of the
    /// chain holds: what starts itself does not give itself more.
    pub fn chain_limit(&self, hops: Option<u32>) -> Option<u32> {
        let own = match hops {
            Some(0) => None,
            Some(hops) => Some(self.depth.saturating_add(hops)),
            None if self.depth == 0 => Some(DEFAULT_MAX_DEPTH),
            None => return self.max_depth,
        };
        match (own, self.max_depth) {
            (Some(own), Some(inherited)) => Some(own.min(inherited)),
            (own, inherited) => inherited.or(own),
        }
    }

    /// Whether its chain is longer than it may be.
    pub fn is_too_deep(&self) -> bool {
        self.max_depth.is_some_and(|most| self.depth > most)
    }
}
