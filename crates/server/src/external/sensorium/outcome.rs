//! What came of a directive, as its job says: the result for its caller, and the outcome record.
//!
//! Both are read from the part of a job that never changes and from where it is now: nothing else is kept, and a purge takes nothing
//! of it. A rejected directive stays rejected, whatever is done with its job.

use api::ProblemCode;
use api::sensorium::{
    AuditStore, Directive, DirectiveDiagnostic, DirectiveOutcome, DirectiveResult, Issuer, PolicyDecision,
};
use domain::job::{ACTION_TIMEOUT, Ended, Job, Phase};
use serde_json::value::RawValue;

use super::directive::Rejection;
use crate::clock_text::text;
use crate::external::deferred::{
    DIRECTIVE_REJECTED, Document, Settled, check, is_directive, result_of, why_over,
};
use crate::jobs::{job_of, visible_job};
use crate::problem::no_such_job;
use crate::reply::{Given, Reply, render};
use crate::{RequestContext, Result, Server};

const RESULT_SCHEMA: &str = "sensorium-directive-result.v1";
/// How the tags begin by which a job knows its directive.
const ACTION: &str = "action:";
const MODULE: &str = "issuer.module:";
const PARTICIPANT: &str = "issuer.participant:";
const NODE: &str = "issuer.node:";
const REJECTED: &str = "rejected:";

/// The five statuses of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Admitted,
    Completed,
    Failed,
    TimedOut,
    Rejected,
}

impl Status {
    /// What it is called, and what was decided.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Admitted => ("admitted", "admit"),
            Self::Completed => ("completed", "admit"),
            Self::Failed => ("failed", "fail"),
            Self::TimedOut => ("timed_out", "timeout"),
            Self::Rejected => ("rejected", "reject"),
        }
    }

    fn of(job: &Job) -> Self {
        if job.spec.source_kind.as_deref() == Some(DIRECTIVE_REJECTED) {
            return Self::Rejected;
        }
        match job.state.phase() {
            Phase::Queued { .. } | Phase::Held(_) | Phase::Waiting(_) => Self::Admitted,
            Phase::Ended(Ended::Completed) => Self::Completed,
            Phase::Ended(Ended::Expired) => Self::TimedOut,
            Phase::Ended(_) => match why_over(job) {
                "operation_timed_out" | "timed_out" | ACTION_TIMEOUT => Self::TimedOut,
                _ => Self::Failed,
            },
        }
    }
}

/// What a job keeps of its directive: who asked for what, and why it was rejected, if it was.
pub(super) fn tags(directive: &Directive, rejected_because: Option<&str>) -> Vec<String> {
    let Issuer { module_id, participant, node_id } = &directive.issuer;
    let told = [
        (ACTION, Some(directive.action_id.as_str())),
        (MODULE, module_id.as_deref()),
        (PARTICIPANT, participant.as_deref()),
        (NODE, node_id.as_deref()),
        (REJECTED, rejected_because),
    ];
    told.into_iter().filter_map(|(name, value)| Some(format!("{name}{}", value?))).collect()
}

fn tag<'a>(job: &'a Job, name: &str) -> Option<&'a str> {
    job.spec.tags.iter().find_map(|tag| tag.strip_prefix(name))
}

/// Whether an answer that was kept is a rejection.
pub(super) fn is_rejection(answer: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(answer).is_ok_and(|kept| kept["schema"] == RESULT_SCHEMA)
}

/// The answer to a directive that was not carried out.
pub(super) fn rejected(job: &Job, rejection: &Rejection) -> DirectiveResult {
    result(job, Status::Rejected, None, vec![diagnostic(rejection.code, &rejection.message)])
}

/// The answer to whoever waited.
pub(super) async fn waited(server: &Server, settled: &Settled) -> Result<Reply> {
    let result = match settled {
        Settled::Ended(record) => ended(server, job_of(record)).await?,
        Settled::Stopped { record, code, message } => {
            let status = if *code == ACTION_TIMEOUT { Status::TimedOut } else { Status::Failed };
            result(job_of(record), status, None, vec![diagnostic(code, message)])
        }
    };
    let bytes = render(&result);
    check(Document::DirectiveResult, &bytes)?;
    Ok(Reply::rendered(bytes, Given::Now))
}

/// The same as the result of a deferred operation that is completed.
pub(crate) async fn nested_result(server: &Server, job: &Job) -> Result<Box<RawValue>> {
    let bytes = render(&ended(server, job).await?);
    check(Document::DirectiveResult, &bytes)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    RawValue::from_string(text).map_err(|_| ProblemCode::Internal.because("the result cannot be shown"))
}

async fn ended(server: &Server, job: &Job) -> Result<DirectiveResult> {
    let status = Status::of(job);
    if status == Status::Completed {
        let data = result_of(server, job).await?;
        return Ok(result(job, status, Some(as_object(data)), Vec::new()));
    }
    let told = format!("it is {}", job.state.name().as_str());
    Ok(result(job, status, None, vec![diagnostic(why_over(job), &told)]))
}

fn result(
    job: &Job,
    status: Status,
    result: Option<Box<RawValue>>,
    diagnostics: Vec<DirectiveDiagnostic>,
) -> DirectiveResult {
    DirectiveResult {
        schema: RESULT_SCHEMA.to_owned(),
        schema_version: 1,
        directive_id: job.spec.source_id.clone().unwrap_or_default(),
        status: status.words().0.to_owned(),
        outcome_id: job.id.as_str().to_owned(),
        observation_ids: Vec::new(),
        result,
        correlation_id: job.spec.correlation_id.clone(),
        diagnostics,
    }
}

/// A result is an object; what is none stands in one.
fn as_object(data: Box<RawValue>) -> Box<RawValue> {
    if data.get().starts_with('{') {
        return data;
    }
    RawValue::from_string(format!(r#"{{"value":{}}}"#, data.get())).unwrap_or(data)
}

fn diagnostic(code: &str, message: &str) -> DirectiveDiagnostic {
    DirectiveDiagnostic { level: "error".to_owned(), code: code.to_owned(), message: message.to_owned() }
}

/// The outcome record of a directive.
pub(crate) async fn read_outcome(server: &Server, asked: RequestContext) -> Result<Reply> {
    let visible = visible_job(server, &asked).await?;
    if !is_directive(visible.job()) {
        return Err(no_such_job(&asked.id));
    }
    let bytes = render(&outcome(visible.job()));
    check(Document::DirectiveOutcome, &bytes)?;
    Ok(Reply::rendered(bytes, Given::Now))
}

fn outcome(job: &Job) -> DirectiveOutcome {
    let status = Status::of(job);
    let completed_at = job.completed_at.filter(|_| status != Status::Admitted);
    let lasted = completed_at.map(|end| end.micros().saturating_sub(job.created_at.micros()));
    let reason = match status {
        Status::Admitted | Status::Completed => None,
        Status::Failed | Status::TimedOut => Some(why_over(job)),
        Status::Rejected => tag(job, REJECTED),
    };
    DirectiveOutcome {
        schema: "sensorium-directive-outcome.v1".to_owned(),
        schema_version: 1,
        outcome_id: job.id.as_str().to_owned(),
        directive_id: job.spec.source_id.clone().unwrap_or_default(),
        status: status.words().0.to_owned(),
        recorded_at: text(completed_at.unwrap_or(job.created_at)),
        action_id: tag(job, ACTION).map(str::to_owned).unwrap_or_default(),
        issuer: Issuer {
            module_id: tag(job, MODULE).map(str::to_owned),
            participant: tag(job, PARTICIPANT).map(str::to_owned),
            node_id: tag(job, NODE).map(str::to_owned),
        },
        started_at: job.attempts.first().map(|attempt| text(attempt.started_at)),
        completed_at: completed_at.map(text),
        duration_ms: lasted.and_then(|micros| u64::try_from(micros / 1_000).ok()),
        decision: PolicyDecision {
            decision: status.words().1.to_owned(),
            reason: reason.map(str::to_owned),
            retryable: status != Status::Completed && status != Status::Rejected,
        },
        retries: job.attempt_count.saturating_sub(1),
        summary: job.result.summary.clone(),
        observation_ids: Vec::new(),
        correlation_id: job.spec.correlation_id.clone(),
        catalog_digest: job.spec.catalog_digest.clone(),
        audit_store: AuditStore {
            kind: "ledger".to_owned(),
            href: format!("/jobs/{}/facts", job.id.as_str()),
        },
    }
}
