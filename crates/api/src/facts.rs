//! The ledger on the wire.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// One line of the ledger: what happened to one record.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Fact<'a> {
    /// Its place in the whole ledger; the stream is resumed after it.
    pub position: u64,
    /// The record that it is about.
    pub stream: Cow<'a, str>,
    /// Its place in the record's stream.
    pub version: u64,
    /// The writer's name for it.
    pub fact_id: Cow<'a, str>,
    /// Its kind, as `name/version`.
    pub kind: Cow<'a, str>,
    /// When it was decided.
    pub at: Cow<'a, str>,
    /// Who did it.
    pub actor: Cow<'a, str>,
    /// What caused it.
    pub causation_id: Option<Cow<'a, str>>,
    /// What joins it to other work.
    pub correlation_id: Option<Cow<'a, str>>,
    /// The rest: an object, or only the name of what happened.
    #[schema(value_type = utoipa::openapi::schema::Value)]
    pub payload: Cow<'a, RawValue>,
}

/// A page of one record's facts, oldest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FactList<'a> {
    /// The facts.
    pub facts: Vec<Fact<'a>>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<Cow<'a, str>>,
}
