//! Why a job is not moving.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What keeps a job from moving, most important first, and the earliest time at which it could move by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(utoipa::ToSchema))]
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
    /// The question that it waits to be answered, as its executor asked it; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schema(value_type = utoipa::openapi::schema::Value))]
    pub question: Option<Box<RawValue>>,
}

/// One thing that keeps a job from moving.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(utoipa::ToSchema))]
pub struct Reason {
    /// Stable.
    pub code: String,
    /// For people: what it is and what to do about it.
    pub detail: String,
    /// Until when, if that is known.
    pub until: Option<String>,
}
