//! What each refusal of the rules, the engine and the store becomes: a problem.

use std::borrow::Borrow;

use api::{FieldError, Problem, ProblemCode};
use domain::{RecordKind, Refusal};
use engine::EngineError;
use serde::de::DeserializeOwned;
use store::StoreError;

use crate::Result;

/// The longest id that an answer repeats.
const MAX_ECHOED_ID: usize = 128;

/// A request that cannot be carried out because of one field of its body.
pub(crate) fn at_field(field: &str, kind: &'static str, told: impl Into<String>) -> Problem {
    at(ProblemCode::InvalidRequest, kind, &["body", field], told)
}

/// A problem with one place of the request, which is told in the same words.
pub(crate) fn at(code: ProblemCode, kind: &'static str, loc: &[&str], told: impl Into<String>) -> Problem {
    let told = told.into();
    let error = FieldError::new(kind, loc, told.clone());
    code.because(told).at(error)
}

/// A request that cannot be read at this place, with the place in front.
pub(crate) fn unread(kind: &'static str, loc: &[&str], told: &str) -> Problem {
    let error = FieldError::new(kind, loc, told);
    ProblemCode::InvalidRequest.because(format!("{}: {told}", loc.join("."))).at(error)
}

/// There is no such job, or not for this caller: the answer does not tell which.
pub(crate) fn no_such_job(id: &str) -> Problem {
    no_such_record(RecordKind::Job, id)
}

/// The same of any record.
pub(crate) fn no_such_record(kind: RecordKind, id: &str) -> Problem {
    match kind {
        RecordKind::Job if id.starts_with("cal-") => no_such("recurring job", id),
        RecordKind::Job => no_such("work", id),
        RecordKind::Operation | RecordKind::Event | RecordKind::Run => no_such(kind.as_str(), id),
    }
}

/// There is nothing of this name, or it is not the caller's: both read alike.
pub(crate) fn no_such(what: &str, id: &str) -> Problem {
    ProblemCode::NotFound.because(format!("No {what}: {}", echoed(id)))
}

/// As much of an id as an answer repeats.
pub(crate) fn echoed(id: &str) -> String {
    id.chars().take(MAX_ECHOED_ID).collect()
}

/// What an order on a job came to instead of a change.
pub(crate) fn of_engine(error: &EngineError, id: &str) -> Problem {
    match error {
        EngineError::Refused(refusal) => of_refusal(refusal, id),
        // The caller compares requests first; what is left is another request.
        EngineError::KeyTaken(_) => key_reused(),
        EngineError::Contended => {
            ProblemCode::Busy.because("the record kept changing while this was decided; repeat the request")
        }
        EngineError::TooManyConsequences => ProblemCode::TooLarge.because(error.to_string()),
        EngineError::Store(error) => of_store(error),
    }
}

pub(crate) fn key_reused() -> Problem {
    ProblemCode::IdempotencyKeyReused
        .because("the idempotency key was used for another request; choose a new key for a new request")
}

/// What the rules said.
pub(crate) fn of_refusal(refusal: &Refusal, id: &str) -> Problem {
    use ProblemCode as Code;
    #[allow(clippy::wildcard_enum_match_arm, reason = "most refusals have a problem of the same code")]
    let code = match refusal {
        Refusal::UnknownRecord | Refusal::UnknownIdForm | Refusal::WrongRecordKind => return no_such_job(id),
        Refusal::TooLarge { what, limit } => {
            let error = FieldError::new("too_large", &["body", what], format!("over its limit of {limit}"));
            return Code::TooLarge.because(refusal.to_string()).at(error);
        }
        Refusal::InvalidPolicy { field } => {
            let error = FieldError::new("invalid_policy", &["body", field], "outside what the host allows");
            return Code::InvalidPolicy.because(refusal.to_string()).at(error);
        }
        Refusal::InvalidJson | Refusal::WrongBody { .. } => Code::InvalidRequest,
        Refusal::NulInJson => Code::InvalidText,
        Refusal::ClaimHeld | Refusal::ClaimLost | Refusal::ClaimRequired => Code::LeaseHeld,
        Refusal::NotCancelable { .. } => Code::Refused,
        other => Code::parse(other.code()).unwrap_or(Code::Refused),
    };
    #[allow(clippy::wildcard_enum_match_arm, reason = "most refusals say it themselves")]
    let detail = match refusal {
        Refusal::NotDue { .. } => "it is not due yet".to_owned(),
        Refusal::Terminal { state } => {
            format!("terminal work {id} is already {state}; terminal state cannot be changed")
        }
        Refusal::NotRunnable { state } => format!("Job cannot be run from state {state}"),
        Refusal::WaitsForPuller => {
            format!("{refusal} (`longhaul jobs why {id}` says who may); nothing was changed")
        }
        Refusal::NotRetryable { state } => format!("Job cannot be retried from state {state}"),
        Refusal::AttemptRequired => "attempt_id is required for runner-managed job updates".to_owned(),
        Refusal::StaleAttempt => "stale attempt_id".to_owned(),
        Refusal::AnswerRequired => format!("{refusal}: POST /jobs/{id}/answer, or cancel it"),
        other => other.to_string(),
    };
    code.because(detail)
}

/// What the store could not do.
pub(crate) fn of_store(error: impl Borrow<StoreError>) -> Problem {
    let error = error.borrow();
    match error {
        StoreError::Busy => {
            ProblemCode::Busy.because("too many commits wait; nothing was written, repeat the request")
        }
        StoreError::Full => {
            ProblemCode::StoreFull.because("the disk is full; nothing was written, reads go on")
        }
        StoreError::OutcomeUnknown => ProblemCode::OutcomeUnknown
            .because("it may have happened; repeat the request under the same idempotency key"),
        StoreError::Unavailable(_) => ProblemCode::StoreUnavailable.because("the store cannot be reached"),
        StoreError::TooLarge { what, limit } => {
            ProblemCode::TooLarge.because(format!("{what} is over its limit of {limit}"))
        }
        StoreError::UnknownRecord => ProblemCode::NotFound.because("there is no such record"),
        StoreError::Conflict | StoreError::Fenced | StoreError::ClaimHeld | StoreError::KeyTaken(_) => {
            ProblemCode::Refused.because(error.to_string())
        }
        // The store has written the log line.
        StoreError::BodyDamaged(_) => ProblemCode::BodyDamaged.because(error.to_string()),
        StoreError::Broken(reason) => {
            tracing::error!(code = error.code(), "the store is broken: {reason}");
            ProblemCode::Internal.because("what is stored cannot be understood; see the daemon's log")
        }
    }
}

/// A body of a known form.
pub(crate) fn read<T: DeserializeOwned>(body: &str) -> Result<T> {
    // The derived readers would also take a list of values in the order of the fields.
    if !body.starts_with('{') {
        return Err(unread("dict_type", &["body"], "invalid type: expected an object"));
    }
    let mut reader = serde_json::Deserializer::from_str(body);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| invalid(&error))
}

/// What is wrong with which field. The reader's messages are ours to word; their beginnings tell the kinds apart.
fn invalid(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let told = error.inner().to_string();
    let told = told.rsplit_once(" at line ").map_or(told.as_str(), |(told, _)| told);
    let mut mistake = FieldError::new("value_error", &["body"], told);
    let mut path: Vec<String> = error
        .path()
        .iter()
        .filter_map(|segment| match segment {
            serde_path_to_error::Segment::Map { key } => Some(key.clone()),
            serde_path_to_error::Segment::Seq { index } => Some(index.to_string()),
            serde_path_to_error::Segment::Enum { .. } | serde_path_to_error::Segment::Unknown => None,
        })
        .collect();
    let named = told.split('`').nth(1);
    mistake.kind = if told.starts_with("unknown field") {
        if path.last().map(String::as_str) != named {
            path.extend(named.map(str::to_owned));
        }
        "extra_forbidden".into()
    } else if told.starts_with("missing field") {
        path.extend(named.map(str::to_owned));
        "missing".into()
    } else {
        let expected = told.rsplit("expected ").next().unwrap_or_default();
        match expected {
            _ if told.starts_with("unknown variant") => "enum".into(),
            "a string" => "string_type".into(),
            "an object" => "dict_type".into(),
            "an array" | "a sequence" => "list_type".into(),
            _ if expected.starts_with("struct ") => "dict_type".into(),
            _ if expected.starts_with(['i', 'u']) => "int_type".into(),
            _ => "value_error".into(),
        }
    };
    mistake.loc.extend(path);
    ProblemCode::InvalidRequest.because(format!("{}: {told}", mistake.loc.join("."))).at(mistake)
}
