//! Facts as text: `name/version` and a JSON payload. Old kinds are lifted in `upcast.rs`; none is ever renamed.

use domain::checkpoint::is_checkpoint;
use domain::{Fact, RecordKind};
use thiserror::Error;

use crate::{VIEW_FORMAT, upcast};

/// A stored fact that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodecError {
    /// A kind that this version does not know.
    #[error("unknown kind of fact {0:?}; a newer longhaul may have written it")]
    UnknownKind(String),
    /// A payload that does not fit its kind.
    #[error("the payload of a {kind} does not fit: {reason}")]
    Payload {
        /// The kind.
        kind: String,
        /// What does not fit.
        reason: String,
    },
}

/// The kind under which a fact is stored.
pub fn fact_kind(fact: &Fact) -> &'static str {
    fact.kind_name()
}

/// The payload under which a fact is stored.
pub fn encode_fact(fact: &Fact) -> String {
    serde_json::to_string(fact).expect("facts have only string keys and finite numbers")
}

/// Reads a stored fact of any release.
pub fn decode_fact(kind: &str, payload: &str) -> Result<Fact, CodecError> {
    let misfit = |reason: String| CodecError::Payload { kind: kind.to_owned(), reason };
    let (kind, payload) = upcast::lift(kind, payload);
    let Some(of) = RecordKind::of_fact(&kind) else { return Err(CodecError::UnknownKind(kind.into_owned())) };
    let mut from = serde_json::Deserializer::from_str(&payload);
    let fact = match (is_checkpoint(&kind), of.is_checkpointed()) {
        (true, false) => return Err(CodecError::UnknownKind(kind.into_owned())),
        (true, true) => Fact::read_checkpoint(of, &mut from),
        (false, _) => Fact::read(of, &mut from),
    };
    let fact = fact.and_then(|fact| from.end().map(|()| fact));
    let fact = fact.map_err(|error| misfit(error.to_string()))?;
    if let Fact::Checkpointed { checkpointed } = &fact
        && checkpointed.view_format > VIEW_FORMAT
    {
        let format = checkpointed.view_format;
        return Err(misfit(format!(
            "its state is a view of format {format}; a newer longhaul may have written it"
        )));
    }
    if fact_kind(&fact) == kind {
        return Ok(fact);
    }
    Err(misfit(format!("it reads as a {}", fact_kind(&fact))))
}
