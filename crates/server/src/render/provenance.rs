//! Where a job came from, as its creator says, and the runner's record, as we know it.

use std::borrow::Cow;

use api::{Attempt, ProtocolCancel, Runner};
use domain::BodyName;
use domain::ask::correlation_id;
use domain::job::{CancelAnswer, Job, JobState, JobStateName, Reporter, Trigger};
use serde_json::value::RawValue;

use super::raw_object::{RawObject, raw};
use super::{Bodies, Extent};
use crate::attempt_alias::shown_id;
use crate::clock_text::text;

/// Attempts in an answer that had to be cut.
const ATTEMPTS_WHEN_CUT: usize = 1;

/// The whole provenance object: what the creator said, with the runner's record in place of whatever stood there.
pub(super) fn provenance(
    job: &Job,
    runner: Option<&Runner<'_>>,
    told_to_stop: Option<&ProtocolCancel<'_>>,
    bodies: &Bodies,
) -> Cow<'static, RawValue> {
    let given = bodies.named(job, BodyName::Provenance);
    if runner.is_none() && told_to_stop.is_none() {
        return raw(given.unwrap_or("{}").to_owned());
    }
    let mut whole = given.and_then(RawObject::parse).unwrap_or_default();
    if let Some(runner) = runner {
        whole.set("runner", runner);
    }
    if let Some(told) = told_to_stop {
        whole.set("protocol_cancel", told);
    }
    whole.to_raw()
}

/// The provenance beside a result.
pub(crate) fn end_provenance(job: &Job, bodies: &Bodies, viewer: &Reporter) -> Cow<'static, RawValue> {
    let runner = runner(job, None, Extent::Whole, viewer);
    provenance(job, runner.as_ref(), protocol_cancel(job).as_ref(), bodies)
}

/// `provenance.links`, or nothing.
pub(super) fn links(job: &Job, bodies: &Bodies) -> Cow<'static, RawValue> {
    let given = bodies.named(job, BodyName::Provenance).and_then(RawObject::parse).unwrap_or_default();
    let links = given.get("links").map_or("{}", RawValue::get);
    raw(links.to_owned())
}

/// The runner's record of a job that was dispatched.
pub(super) fn runner<'a>(
    job: &'a Job,
    lease_until: Option<String>,
    extent: Extent,
    viewer: &Reporter,
) -> Option<Runner<'a>> {
    let last = job.last_attempt()?;
    let kept = match extent {
        Extent::Whole => job.attempts.len(),
        Extent::Cut => ATTEMPTS_WHEN_CUT,
    };
    let shown = &job.attempts[job.attempts.len().saturating_sub(kept)..];
    let failed = |attempt: &&'a domain::job::Attempt| {
        attempt.end.as_ref().is_some_and(|end| end.state != JobStateName::Completed)
    };
    let last_failed = job.attempts.iter().rev().find(failed).and_then(|attempt| attempt.end.as_ref());
    Some(Runner {
        attempt_count: job.attempt_count,
        attempts: shown
            .iter()
            .map(|one| attempt(job, one, lease_until.clone().filter(|_| one.id == last.id), viewer))
            .collect(),
        current_attempt_id: shown_id(last, viewer),
        runner_owner_id: Cow::Borrowed(last.owner.as_str()),
        acquired_at: Cow::Owned(text(last.started_at)),
        lease_until: lease_until.clone().map(Cow::Owned),
        last_error: last_failed.and_then(|end| end.reason.as_deref()).map(Cow::Borrowed),
        outside: None,
        stale_reports: job.stale_reports,
    })
}

fn attempt<'a>(
    job: &'a Job,
    attempt: &'a domain::job::Attempt,
    lease_until: Option<String>,
    viewer: &Reporter,
) -> Attempt<'a> {
    let end = attempt.end.as_ref();
    let phase = match end {
        Some(end) => end.reason.as_deref(),
        None => job.phase.as_deref(),
    };
    Attempt {
        attempt_id: shown_id(attempt, viewer),
        number: attempt.number,
        trigger: Cow::Borrowed(match attempt.trigger {
            Trigger::Automatic => "automatic",
            Trigger::Run => "run",
            Trigger::Retry => "retry",
            Trigger::Continued => "continued",
        }),
        status: Cow::Borrowed(end.map_or(job.state.name(), |end| end.state).as_str()),
        phase: phase.map(Cow::Borrowed),
        started_at: Cow::Owned(text(attempt.started_at)),
        completed_at: end.map(|end| Cow::Owned(text(end.at))),
        runner_owner_id: Cow::Borrowed(attempt.owner.as_str()),
        lease_until: lease_until.map(Cow::Owned),
        assigned_peer_id: job.spec.assigned_peer_id.as_deref().map(Cow::Borrowed),
        correlation_id: correlation_id(job, attempt).map(Cow::Owned),
        result_summary: end.and_then(|end| end.result.summary.as_deref()).map(Cow::Borrowed),
    }
}

/// What became of telling the executor to stop; nothing if nobody had to be told.
pub(super) fn protocol_cancel(job: &Job) -> Option<ProtocolCancel<'_>> {
    let cancel = job.cancel.as_ref()?;
    if job.attempts.is_empty() && job.state == JobState::Cancelled {
        return None;
    }
    let peer_id = job.spec.assigned_peer_id.as_deref().map(Cow::Borrowed);
    let record = |attempted: bool, status: &'static str, reason: &'static str| ProtocolCancel {
        attempted,
        status: Cow::Borrowed(status),
        reason: Cow::Borrowed(reason),
        peer_id: peer_id.clone(),
        error: None,
        at: None,
    };
    let answer = cancel.answers.last();
    let at = answer.map(|kept| Cow::Owned(text(kept.at)));
    Some(match answer.map(|kept| &kept.answer) {
        Some(CancelAnswer::Cancelled) => ProtocolCancel { at, ..record(true, "sent", "cancel_confirmed") },
        Some(CancelAnswer::Accepted) => ProtocolCancel { at, ..record(true, "sent", "cancel_accepted") },
        Some(CancelAnswer::Refused(said)) => ProtocolCancel {
            at,
            error: Some(Cow::Borrowed(said)),
            ..record(true, "failed", "protocol_cancel_failed")
        },
        Some(CancelAnswer::Unreachable) => {
            ProtocolCancel { at, ..record(true, "unavailable", "executor_unreachable") }
        }
        None if job.spec.executor.is_some() && !job.attempts.is_empty() => {
            record(true, "sent", "executor_told")
        }
        None if peer_id.is_none() => record(false, "unavailable", "no_assigned_peer"),
        None => record(false, "unavailable", "no_protocol_cancel_adapter"),
    })
}
