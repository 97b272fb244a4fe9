//! How an operation begins: its service took the work, or nobody waits for it any more.

use super::{Decision, abandoned};
use crate::limits::{MAX_ID_BYTES, MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_optional, check_text};
use crate::operation::command::NewOperation;
use crate::operation::fact::{Accepted, ExpiryCause, OperationFact};
use crate::operation::state::{Operation, OperationLink};
use crate::policy::{Hint, LifeLimit, TtlHints};
use crate::{BodyName, OperationId, RecordId, Refusal, Timestamp};

pub(super) fn accept(id: &OperationId, new: &NewOperation, now: Timestamp) -> Decision {
    match accepted(id, new, now) {
        Ok(_) if new.handle.is_none() => {
            Refusal::WrongBody { expected: BodyName::Handle.as_str(), given: "nothing" }.into()
        }
        Ok(fact) => Decision::fact(fact),
        Err(refusal) => refusal.into(),
    }
}

/// Nobody waits for it and nobody polls it: it is over for the host as soon as it is known.
pub(super) fn accept_orphan(id: &OperationId, new: &NewOperation, reason: &str, now: Timestamp) -> Decision {
    match accepted(id, new, now) {
        Ok(fact) if new.handle.is_none() => {
            let cause = ExpiryCause::SubmitOutcomeUnknown;
            Decision::facts([fact, OperationFact::Expired { cause }])
        }
        Ok(fact) => Decision::facts([fact, abandoned(reason)]),
        Err(refusal) => refusal.into(),
    }
}

/// It is known already; only a handle that nobody knew is news.
pub(super) fn learn_handle(operation: &Operation, new: &NewOperation) -> Decision {
    match (operation.handle, new.handle) {
        (None, Some(handle)) => match handle.check_named(BodyName::Handle) {
            Ok(()) => Decision::fact(OperationFact::HandleLearned {
                handle,
                cancelability: new.cancelability.clone(),
                external_job_id: new.external_job_id.clone(),
            }),
            Err(refusal) => refusal.into(),
        },
        (None, None) | (Some(_), _) => Decision::Nothing,
    }
}

fn accepted(id: &OperationId, new: &NewOperation, now: Timestamp) -> Result<OperationFact, Refusal> {
    RecordId::Operation(id.clone())
        .check()
        .and_then(|()| new.policy.check())
        .and_then(|()| check_text("operation kind", &new.kind, MAX_LABEL_BYTES))
        .and_then(|()| check_text("specialist", &new.specialist, MAX_LABEL_BYTES))
        .and_then(|()| check_optional("circle", new.circle.as_deref(), MAX_LABEL_BYTES))
        .and_then(|()| check_optional("external_job_id", new.external_job_id.as_deref(), MAX_ID_BYTES))
        .and_then(|()| check_optional("progress_hint", new.progress_hint.as_deref(), MAX_NOTE_BYTES))
        .and_then(|()| new.cancelability.check())
        .and_then(|()| new.handle.map_or(Ok(()), |handle| handle.check_named(BodyName::Handle)))?;
    let hints =
        TtlHints { fail_after: new.fail_after, action_ttl: new.action_ttl, deadline_at: new.deadline_at };
    let (expires_at, limit) = new.policy.life(hints, now)?;
    let bounded_by = match limit {
        LifeLimit::MaxTtl => new.ttl_limit.unwrap_or(LifeLimit::MaxTtl),
        limit @ (LifeLimit::Job
        | LifeLimit::JobTtl
        | LifeLimit::FailAfter
        | LifeLimit::ActionTtl
        | LifeLimit::Wait) => limit,
    };
    let interval = new.policy.retry_after(new.retry_after);
    let asked_ttl = [new.fail_after, new.action_ttl].into_iter().filter_map(Hint::as_ttl_seconds).min();
    Ok(OperationFact::Dispatched(Box::new(Accepted {
        link: OperationLink {
            job_id: new.job_id.clone(),
            attempt_id: new.attempt_id.clone(),
            kind: new.kind.clone(),
            specialist: new.specialist.clone(),
            circle: new.circle.clone(),
        },
        handle: new.handle,
        cancelability: new.cancelability.clone(),
        interval_seconds: interval.seconds,
        progress_hint: new.progress_hint.clone(),
        invalid_hint: interval.hint_was_invalid,
        next_poll_at: new.policy.next_poll_at(interval.seconds, new.jitter, now),
        expires_at,
        policy: new.policy.clone(),
        bounded_by: Some(bounded_by),
        asked_retry_after_seconds: new
            .retry_after
            .seconds()
            .filter(|asked| *asked != i64::from(interval.seconds)),
        asked_ttl_seconds: asked_ttl.filter(|asked| now.plus_seconds(*asked) > expires_at),
        external_job_id: new.external_job_id.clone(),
    })))
}
