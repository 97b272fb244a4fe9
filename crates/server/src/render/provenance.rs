//! Where a job came from, as its creator says, and the runner's record, as we know it.

use std::borrow::Cow;

use api::{Attempt, AttemptError, ProtocolCancel, ReleaseResult, Runner};
use domain::BodyName;
use domain::ask::correlation_id;
use domain::job::{
    CANCEL_UNCONFIRMED, CANCELLED_BEFORE_START, CancelAnswer, CancelRecipient, CancelRequest, CancelSent,
    CancelTry, Holder, Job, JobStateName, KeptCancelTry, ObservedRelease, Release, Reporter, Trigger,
};
use serde_json::value::RawValue;

use super::raw_object::{RawObject, raw};
use super::{Bodies, Extent};
use crate::access::attempt_alias::shown_id;
use crate::clock_text::text;

/// How it is told that a service has not answered a cancel in time.
const TIMED_OUT: [&str; 2] = ["timed_out", "no answer in time"];
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
pub(crate) fn end_provenance(
    job: &Job,
    bodies: &Bodies,
    viewer: &Reporter,
    observed: &serde_json::Value,
) -> Cow<'static, RawValue> {
    let runner = runner(job, None, Extent::Whole, viewer);
    let told = provenance(job, runner.as_ref(), protocol_cancel(job).as_ref(), bodies);
    let mut whole = RawObject::parse(told.get()).unwrap_or_default();
    whole.set("observed", observed);
    whole.to_raw()
}

/// What became of whoever did a job that is over.
pub(crate) fn released(job: &Job) -> Option<ReleaseResult<'_>> {
    release(job, job.last_attempt()?)
}

/// What joins the job to other work: the creator's word, else the ask that its current attempt was delivered with.
pub(super) fn correlation(job: &Job) -> Option<Cow<'_, str>> {
    let asked = || {
        let attempt = job.last_attempt().filter(|attempt| attempt.delivered_at.is_some())?;
        correlation_id(job, attempt).map(Cow::Owned)
    };
    job.spec.correlation_id.as_deref().map(Cow::Borrowed).or_else(asked)
}

/// `provenance.links` of its creator, and beside them what the daemon knows of itself: asks, events, runs and the session.
pub(super) fn links(job: &Job, bodies: &Bodies) -> Cow<'static, RawValue> {
    let given = bodies.named(job, BodyName::Provenance).and_then(RawObject::parse).unwrap_or_default();
    let given = given.get("links").map_or("{}", RawValue::get);
    let Some(mut links) = RawObject::parse(given) else { return raw(given.to_owned()) };
    let delivered = job.attempts.iter().filter(|attempt| attempt.delivered_at.is_some());
    let asks: Vec<String> = delivered.filter_map(|attempt| correlation_id(job, attempt)).collect();
    let event = bodies.event().map(str::to_owned);
    let run = job.spec.step.as_ref().map(|step| step.run_id.as_str().to_owned());
    for (key, ids) in
        [("asks", asks), ("events", event.into_iter().collect()), ("runs", run.into_iter().collect())]
    {
        if !ids.is_empty() && links.get(key).is_none() {
            links.set(key, &ids);
        }
    }
    if let Some(session) = job.spec.session_id.as_deref().filter(|_| links.get("session").is_none()) {
        links.set("session", session);
    }
    links.to_raw()
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
    let last_failed = job.attempts.iter().rev().find(failed);
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
        last_error: last_failed.map(|one| AttemptError { attempt: Some(one.number), ..error(one) }),
        release_result: release(job, last),
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
        executor: executor(job, attempt).map(Cow::Borrowed),
        delivery_state: Cow::Borrowed(match (attempt.delivered_at, end) {
            (Some(_), _) => "delivered",
            (None, Some(_)) => "failed",
            (None, None) => "pending",
        }),
        delivered_at: attempt.delivered_at.map(|at| Cow::Owned(text(at))),
        error: error(attempt),
    }
}

/// Who does an attempt, or did it.
fn executor<'a>(job: &'a Job, attempt: &'a domain::job::Attempt) -> Option<&'a str> {
    let peer = match &attempt.holder {
        Holder::Caller(caller) => caller.peer.as_deref(),
        Holder::Bearer | Holder::Daemon => None,
    };
    job.spec.executor.as_deref().or(peer).or(job.spec.assigned_peer_id.as_deref())
}

/// Why it did not succeed, if it did not.
fn error(attempt: &domain::job::Attempt) -> AttemptError<'_> {
    let Some(end) = attempt.end.as_ref().filter(|end| end.state != JobStateName::Completed) else {
        return AttemptError::default();
    };
    AttemptError {
        reason: end.reason.as_deref().map(Cow::Borrowed),
        state: Some(Cow::Borrowed(end.state.as_str())),
        digest: end.result.error.map(|error| Cow::Owned(format!("sha256:{}", error.sha256))),
        attempt: None,
    }
}

/// What was seen to become of whoever did a job that is over. Who pulled it is no process of ours; of an executor of ours of which nothing
/// was seen nobody knows.
fn release<'a>(job: &Job, last: &domain::job::Attempt) -> Option<ReleaseResult<'a>> {
    if !job.state.name().is_terminal() {
        return None;
    }
    let told = |status: &'static str, reason: &'static str| ReleaseResult {
        status: Cow::Borrowed(status),
        reason: Cow::Borrowed(reason),
        released_at: None,
    };
    Some(match (&last.holder, last.release) {
        (Holder::Bearer | Holder::Caller(_), _) => told("skipped", "no_release_handle"),
        (Holder::Daemon, None) => told("failed", "not_confirmed"),
        (Holder::Daemon, Some(ObservedRelease { release: Release::Persists, .. })) => {
            told("skipped", "executor_persists")
        }
        (Holder::Daemon, Some(ObservedRelease { release: Release::Ended, at })) => {
            ReleaseResult { released_at: Some(Cow::Owned(text(at))), ..told("released", "attempt_ended") }
        }
    })
}

/// What became of telling whoever does the work to stop; nothing if nobody had to be told. It says `sent` only of what the record says
/// was sent.
pub(super) fn protocol_cancel<'a>(job: &'a Job) -> Option<ProtocolCancel<'a>> {
    let cancel = job.cancel.as_ref().filter(|cancel| !cancel.is_late())?;
    let record = |attempted: bool, status: &'static str, reason: &'static str, detail: Option<&'a str>| {
        ProtocolCancel {
            attempted,
            status: Cow::Borrowed(status),
            reason: Cow::Borrowed(reason),
            peer_id: job.spec.assigned_peer_id.as_deref().map(Cow::Borrowed),
            error: None,
            detail: detail.map(Cow::Borrowed),
            at: cancel.tried.as_ref().map(|kept| Cow::Owned(text(kept.at))),
        }
    };
    let Some(KeptCancelTry { tried, .. }) = &cancel.tried else {
        return not_sent(job, cancel).map(|(reason, detail)| record(false, "unavailable", reason, detail));
    };
    Some(match tried {
        CancelTry::NotCancelable(why) => record(false, "unavailable", "not_cancelable", Some(why)),
        CancelTry::NotSent(why) => record(false, "unavailable", "not_sent", Some(why)),
        CancelTry::Sent(CancelSent { to, answer, told }) => match answer {
            None => record(true, "sent", sent_to(*to), None),
            Some(CancelAnswer::Cancelled | CancelAnswer::NeverStarted) => {
                record(true, "sent", "cancel_confirmed", None)
            }
            Some(CancelAnswer::Accepted) => record(true, "sent", "cancel_accepted", None),
            Some(CancelAnswer::Refused(said)) => ProtocolCancel {
                error: Some(Cow::Borrowed(said)),
                ..record(true, "failed", "protocol_cancel_failed", None)
            },
            Some(CancelAnswer::Unreachable)
                if told.as_deref().is_some_and(|told| TIMED_OUT.contains(&told)) =>
            {
                record(true, "timeout", "protocol_cancel_timeout", None)
            }
            Some(CancelAnswer::Unreachable) => {
                record(true, "unavailable", "executor_unreachable", told.as_deref())
            }
        },
    })
}

const fn sent_to(recipient: CancelRecipient) -> &'static str {
    match recipient {
        CancelRecipient::Executor | CancelRecipient::Process | CancelRecipient::Service => "executor_told",
        CancelRecipient::Worker => "told_by_heartbeat",
    }
}

/// Why nobody was sent a cancel, if somebody had to be.
fn not_sent(job: &Job, cancel: &CancelRequest) -> Option<(&'static str, Option<&'static str>)> {
    let is_over = job.state.name().is_terminal();
    let reason = job.state_reason.as_deref();
    if cancel.in_state == JobStateName::Queued || reason == Some(CANCELLED_BEFORE_START) {
        let may_run = reason == Some(CANCEL_UNCONFIRMED);
        return may_run
            .then_some(("submit_outcome_unknown", Some("nobody knows whether the service has it")));
    }
    let Some(attempt) = job.last_attempt() else {
        let has_peer = job.spec.assigned_peer_id.is_some();
        return Some((if has_peer { "no_protocol_cancel_adapter" } else { "no_assigned_peer" }, None));
    };
    Some(match attempt.holder {
        Holder::Daemon if is_over => ("not_sent", None),
        Holder::Daemon if job.intent.is_some() => {
            ("submit_under_way", Some("it is being given to its service; that is asked when it has it"))
        }
        Holder::Daemon => ("not_sent_yet", None),
        Holder::Caller(_) | Holder::Bearer if is_over => ("no_heartbeat", None),
        Holder::Caller(_) | Holder::Bearer => {
            ("no_heartbeat_yet", Some("its worker hears of it with its next heartbeat"))
        }
    })
}
