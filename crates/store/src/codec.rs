//! Facts as text: `name/version` and a JSON payload. Old kinds are lifted in `upcast.rs`; none is ever renamed.

use domain::Fact;
use domain::event::EventFact;
use domain::job::JobFact;
use domain::operation::OperationFact;
use domain::run::RunFact;
use thiserror::Error;

use crate::upcast;

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
pub const fn fact_kind(fact: &Fact) -> &'static str {
    match fact {
        Fact::Job(fact) => match fact {
            JobFact::Created(_) => "job.created/1",
            JobFact::Dispatched { .. } => "job.dispatched/1",
            JobFact::Delivered => "job.delivered/1",
            JobFact::Started(_) => "job.started/1",
            JobFact::InputAwaited(_) => "job.input_awaited/1",
            JobFact::Blocked(_) => "job.blocked/1",
            JobFact::SubmitIntended(_) => "job.submit_intended/1",
            JobFact::Deferred { .. } => "job.deferred/1",
            JobFact::ExternalArrived(_) => "job.external_arrived/1",
            JobFact::Answered(_) => "job.answered/1",
            JobFact::Resumed => "job.resumed/1",
            JobFact::Noted(_) => "job.noted/1",
            JobFact::Completed(_) => "job.completed/1",
            JobFact::Failed(_) => "job.failed/1",
            JobFact::Requeued { .. } => "job.requeued/1",
            JobFact::CancelRequested { .. } => "job.cancel_requested/1",
            JobFact::CancelAnswered(_) => "job.cancel_answered/1",
            JobFact::Cancelled(_) => "job.cancelled/1",
            JobFact::Expired(_) => "job.expired/1",
            JobFact::BecameUnavailable(_) => "job.became_unavailable/1",
            JobFact::StaleReportKept(_) => "job.stale_report_kept/1",
            JobFact::StaleReportsCounted { .. } => "job.stale_reports_counted/1",
            JobFact::TimersMoved { .. } => "job.timers_moved/1",
            JobFact::Purged => "job.purged/1",
            JobFact::Retired => "job.retired/1",
        },
        Fact::Operation(fact) => match fact {
            // Loomworks' three names, word for word.
            OperationFact::Dispatched(_) => "external_production_dispatched/1",
            OperationFact::Polled(_) => "external_production_polled/1",
            OperationFact::Resolved(_) => "external_production_resolved/1",
            OperationFact::CancelRequested { .. } => "operation.cancel_requested/1",
            OperationFact::CancelAnswered { .. } => "operation.cancel_answered/1",
            OperationFact::Cancelled => "operation.cancelled/1",
            OperationFact::Expired { .. } => "operation.expired/1",
            OperationFact::HandleLearned { .. } => "operation.handle_learned/1",
            OperationFact::Settled(_) => "operation.settled/1",
            OperationFact::LatePolled(_) => "operation.late_polled/1",
            OperationFact::Contradicted { .. } => "operation.contradicted/1",
            OperationFact::TimersMoved { .. } => "operation.timers_moved/1",
            OperationFact::Retired => "operation.retired/1",
        },
        Fact::Event(fact) => match fact {
            EventFact::Published(_) => "event.published/1",
            EventFact::Settled(_) => "event.settled/1",
            EventFact::TimersMoved { .. } => "event.timers_moved/1",
            EventFact::Retired => "event.retired/1",
        },
        Fact::Run(fact) => match fact {
            RunFact::Started(_) => "run.started/1",
            RunFact::StepStarted { .. } => "run.step_started/1",
            RunFact::GroupEntered { .. } => "run.group_entered/1",
            RunFact::StepEnded { .. } => "run.step_ended/1",
            RunFact::StepReopened { .. } => "run.step_reopened/1",
            RunFact::CancelRequested { .. } => "run.cancel_requested/1",
            RunFact::Condemned { .. } => "run.condemned/1",
            RunFact::Ended(_) => "run.ended/1",
            RunFact::TimersMoved { .. } => "run.timers_moved/1",
            RunFact::Retired => "run.retired/1",
        },
    }
}

/// The payload under which a fact is stored.
pub fn encode_fact(fact: &Fact) -> String {
    let encoded = match fact {
        Fact::Job(fact) => serde_json::to_string(fact),
        Fact::Operation(fact) => serde_json::to_string(fact),
        Fact::Event(fact) => serde_json::to_string(fact),
        Fact::Run(fact) => serde_json::to_string(fact),
    };
    encoded.expect("facts have only string keys and finite numbers")
}

/// Reads a stored fact of any release.
pub fn decode_fact(kind: &str, payload: &str) -> Result<Fact, CodecError> {
    let misfit = |reason: String| CodecError::Payload { kind: kind.to_owned(), reason };
    let (kind, payload) = upcast::lift(kind, payload);
    let family = kind.split('.').next().unwrap_or_default();
    let fact = match family {
        "job" => Fact::Job(serde_json::from_str(&payload).map_err(|error| misfit(error.to_string()))?),
        "event" => Fact::Event(serde_json::from_str(&payload).map_err(|error| misfit(error.to_string()))?),
        "run" => Fact::Run(serde_json::from_str(&payload).map_err(|error| misfit(error.to_string()))?),
        "operation"
        | "external_production_dispatched/1"
        | "external_production_polled/1"
        | "external_production_resolved/1" => {
            Fact::Operation(serde_json::from_str(&payload).map_err(|error| misfit(error.to_string()))?)
        }
        _ => return Err(CodecError::UnknownKind(kind.into_owned())),
    };
    if fact_kind(&fact) == kind {
        return Ok(fact);
    }
    Err(misfit(format!("it reads as a {}", fact_kind(&fact))))
}
