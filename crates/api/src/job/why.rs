//! Why a job is not moving.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// What keeps a job from moving, most important first, and the earliest time at which it could move by itself.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// Its id.
    pub job_id: String,
    /// The same id.
    pub work_id: String,
    /// Where it is.
    pub state: String,
    /// What keeps it there; empty if nothing does.
    pub reasons: Vec<Reason>,
    /// When it could move by itself at the earliest; `null` if it waits for someone.
    pub earliest_at: Option<String>,
    /// The limits of the host that ended it, most important first, or that will end what goes on outside; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<ReachedLimit>,
    /// The question that it waits to be answered, as its executor asked it; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = utoipa::openapi::schema::Value)]
    pub question: Option<Box<RawValue>>,
}

/// A limit of the host: its value, whose it is, and what changes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReachedLimit {
    /// Its name, as its key is called.
    pub limit: String,
    /// How much it allows: a number with its unit, or a time.
    pub value: String,
    /// job, connector policy, connector, executor, pipeline or host default.
    pub whose: String,
    /// The key that changes it.
    pub key: String,
}

/// What was asked for of the host, and what it granted instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Clamp {
    /// The limit that made the difference.
    pub limit: String,
    /// What was asked for.
    pub asked_seconds: i64,
    /// What was granted.
    pub granted_seconds: i64,
}

/// One thing that keeps a job from moving.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// Stable.
    pub code: String,
    /// For people: what it is and what to do about it.
    pub detail: String,
    /// Until when, if that is known.
    pub until: Option<String>,
}
