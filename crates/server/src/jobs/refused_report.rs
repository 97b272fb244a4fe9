//! What is left behind of a report that was refused: a line in the audit log, a figure, and a count on the record.

use domain::job::{Job, JobCommand};
use domain::{AttemptId, Command, Refusal};
use engine::{EngineError, Evidence};

use crate::access::attempt_alias::ALIAS_PREFIX;
use crate::access::audit::Verdict;
use crate::problem::of_refusal;
use crate::{RequestContext, Result, Server};

/// The attempt that an order reports on, if it is a report.
pub(crate) fn attempt_of(command: &Command) -> Option<AttemptId> {
    let Command::Job(command) = command else { return None };
    if let JobCommand::Report(report) = command {
        return report.attempt_id.clone();
    }
    if let JobCommand::Defer { attempt_id, .. } = command { Some(attempt_id.clone()) } else { None }
}

/// The attempt that a caller reports on. An alias names one that was handed to someone else.
pub(crate) fn attempt_named(text: &str) -> Result<AttemptId> {
    if text.starts_with(ALIAS_PREFIX) {
        return Err(of_refusal(&Refusal::AttemptNotYours, ""));
    }
    Ok(AttemptId::new(text))
}

/// Notes a refused report. `about` is the job as it was before, and the attempt that was named; none if nothing is kept of it. What left no
/// evidence is counted: only the commit knows, because many reports at once see the same job.
pub(crate) fn note(
    server: &Server,
    asked: &RequestContext,
    about: Option<(&Job, &AttemptId)>,
    error: &EngineError,
    evidence: Evidence,
) {
    let EngineError::Refused(refusal) = error else { return };
    let verdict = match (refusal, about) {
        (Refusal::AttemptNotYours | Refusal::AnswerRequired, _) => Verdict::Forbidden,
        (Refusal::StaleAttempt, _) | (Refusal::Terminal { .. }, Some(_)) => Verdict::Stale,
        _ => return,
    };
    server.audit.note(&asked.principal.actor, asked.operation.name, &asked.id, verdict);
    if verdict != Verdict::Stale {
        return;
    }
    server.metrics.stale_report();
    if let Some((job, attempt_id)) = about
        && evidence == Evidence::None
        && job.counts_stale_report(attempt_id)
    {
        server.daemon.stale_reports().note(&job.id);
    }
}
