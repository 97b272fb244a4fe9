//! What this face shows of a job: the handle, its status, and the view of operators. Digests stand for everything private.

use api::deferred::{
    DeferredDiagnostic, DeferredExtensions, DeferredOperation, DeferredStatus, DeferredView,
};
use domain::job::{AfterExternal, CancelRequest, Job, JobState};
use domain::limit::{Clamp, ended_by};
use domain::operation::{Operation, OperationStatus};
use domain::policy::{HostPolicy, Persistence, RETRY_AFTER_CEILING_SECONDS};
use domain::{BodyName, BodyRef, Timestamp};
use engine::{Executors, Modes};
use serde_json::value::RawValue;

use super::capability::{Capability, not_cancelable_because};
use super::handle;
use crate::clock_text::text;
use crate::render::limit;

/// The most characters of an error that are shown.
const MAX_ERROR_CHARS: usize = 200;

/// A job whose caller took a handle, with its newest operation.
#[derive(Clone, Copy)]
pub(super) struct Face<'a> {
    pub(super) job: &'a Job,
    pub(super) operation: Option<&'a Operation>,
    pub(super) executors: &'a Executors,
    pub(super) policy: &'a HostPolicy,
}

/// Where a handle leads.
pub(super) fn href(handle: &str, what: &str) -> String {
    format!("/v1/deferred-operations/{handle}/{what}")
}

impl Face<'_> {
    /// The answer to a call that was accepted.
    pub(super) fn accepted(
        &self,
        capability: &Capability,
        causal_context: Option<Box<RawValue>>,
    ) -> Option<DeferredOperation> {
        let (operation_id, operation_kind) = handle::of_job(self.job)?;
        let unavailable = capability.not_cancelable.clone();
        Some(DeferredOperation {
            schema: "deferred-operation.v1".to_owned(),
            schema_version: 1,
            status: "deferred".to_owned(),
            status_href: href(&operation_id, "status"),
            cancel_href: unavailable.is_none().then(|| href(&operation_id, "cancel")),
            cancel_unavailable_reason: unavailable,
            operation_id,
            operation_kind,
            created_at: text(self.job.created_at),
            retry_after_seconds: capability.retry_after_seconds(),
            expires_at: text(self.job.expires_at()?),
            correlation_id: self.job.spec.correlation_id.clone(),
            causal_context,
            audit_outcome_ref: self.job.id.as_str().to_owned(),
            diagnostics: self.diagnostic().into_iter().collect(),
            extensions: DeferredExtensions { clamps: self.clamps_of_call(capability), ..self.extensions() },
        })
    }

    /// Where it is. The result is what the caller has read, if there is one.
    pub(super) fn status(
        &self,
        retry_after_seconds: u32,
        result: Option<Box<RawValue>>,
        causal_context: Option<Box<RawValue>>,
        now: Timestamp,
    ) -> Option<DeferredStatus> {
        let (operation_id, operation_kind) = handle::of_job(self.job)?;
        let status = self.word();
        Some(DeferredStatus {
            schema: "deferred-operation-status.v1".to_owned(),
            schema_version: 1,
            status: status.as_str().to_owned(),
            operation_id,
            operation_kind,
            updated_at: text(self.updated_at()),
            retry_after_seconds: (!status.is_terminal())
                .then(|| self.open_operation().map_or(retry_after_seconds, |open| wait(open, now))),
            expires_at: self.expires_at().map(text),
            causal_context,
            result: result.filter(|_| status == OperationStatus::Completed),
            diagnostics: self.diagnostic().into_iter().collect(),
            extensions: self.steerable_extensions(),
        })
    }

    /// What operators see.
    pub(super) fn view(&self, now: Timestamp) -> Option<DeferredView> {
        let (operation_id, operation_kind) = handle::of_job(self.job)?;
        let (job, status, open) = (self.job, self.word(), self.open_operation());
        let unavailable = self.cancel_unavailable_reason();
        let mut allowed_actions = Vec::new();
        if !status.is_terminal() {
            allowed_actions.extend(open.map(|_| "poll".to_owned()));
            allowed_actions.extend(unavailable.is_none().then(|| "cancel".to_owned()));
        }
        allowed_actions.extend(self.may_be_retried(now).then(|| "retry".to_owned()));
        let extensions = self.extensions();
        let body = |name| job.bodies.iter().find(|body| body.name == name).copied();
        Some(DeferredView {
            operation_id,
            operation_kind,
            status: status.as_str().to_owned(),
            owner_module_id: extensions.owner_module_id,
            capability_id: extensions.capability_id,
            action_id: extensions.action_id,
            source: job.spec.source_kind.clone(),
            created_at: text(job.created_at),
            updated_at: text(self.updated_at()),
            expires_at: self.expires_at().map(text),
            next_retry_at: open.map(|open| text(open.next_poll_at)),
            attempts: extensions.attempt_no,
            cancelable: unavailable.is_none(),
            cancel_unavailable_reason: unavailable,
            correlation_id: job.spec.correlation_id.clone(),
            audit_outcome_ref: job.id.as_str().to_owned(),
            continuation_owner: self.continuation_owner(),
            continuation_digest: self.operation.and_then(|operation| operation.handle).map(digest),
            external_job_id: self.operation.and_then(|operation| operation.external_job_id.clone()),
            catalog_digest: extensions.catalog_digest,
            persistence: extensions.persistence,
            clamps: extensions.clamps,
            limits: extensions.limits,
            input_digest: body(BodyName::Input).map(digest),
            result_digest: job.result.data.map(digest),
            diagnostics_digest: self.operation.and_then(diagnostics_digest),
            last_diagnostic: self.diagnostic(),
            last_error_class: self
                .operation
                .and_then(|operation| Some(operation.last_error.as_ref()?.code.clone())),
            last_error_text: self.operation.and_then(|operation| {
                let shown = operation.last_error.as_ref()?.shown();
                (!shown.is_empty()).then(|| shown.chars().take(MAX_ERROR_CHARS).collect())
            }),
            allowed_actions,
        })
    }

    /// The word of the contract for where the job is.
    pub(super) fn word(&self) -> OperationStatus {
        let reason = self.job.state_reason.as_deref();
        match &self.job.state {
            // However often a service was offered the work: what it has not taken has not begun.
            JobState::Queued { .. } | JobState::Dispatching | JobState::Delivered | JobState::Running
                if self.waits_to_be_taken() =>
            {
                OperationStatus::Pending
            }
            // What was begun once does not fall back to not begun while it is tried again.
            JobState::Queued { .. } if self.job.attempt_count > 0 => OperationStatus::Running,
            JobState::Dispatching | JobState::Delivered if self.job.attempt_count > 1 => {
                OperationStatus::Running
            }
            JobState::Queued { .. }
            | JobState::Dispatching
            | JobState::Delivered
            | JobState::AwaitingInput
            | JobState::Blocked => OperationStatus::Pending,
            JobState::Running | JobState::AwaitingExternal { .. } => OperationStatus::Running,
            JobState::Completed => OperationStatus::Completed,
            JobState::Failed => match reason {
                Some("operation_timed_out" | "timed_out") => OperationStatus::TimedOut,
                Some("operation_unknown") => OperationStatus::Unknown,
                Some(_) | None => OperationStatus::Failed,
            },
            JobState::Cancelled => OperationStatus::Cancelled,
            JobState::Expired => OperationStatus::Expired,
            JobState::Unavailable { .. } => OperationStatus::Unknown,
        }
    }

    /// Whether its work begins outside, and no service has taken it yet.
    fn waits_to_be_taken(&self) -> bool {
        let (circle, executor) = (self.job.spec.circle.as_deref(), self.job.spec.executor.as_deref());
        let executor = executor.and_then(|executor| self.executors.find(circle, executor));
        let taken = self.operation.is_some_and(|operation| operation.handle.is_some());
        !taken && executor.is_some_and(|executor| executor.specialist.traits().begins_outside)
    }

    /// Why it cannot be stopped, if it cannot: what its service has says so itself, else its executor and the host's policy do.
    pub(super) fn cancel_unavailable_reason(&self) -> Option<String> {
        if let Some(open) = self.open_operation() {
            return open.uncancelable_because();
        }
        let found_out = self.job.cancel.as_ref().and_then(CancelRequest::unavailable_because);
        let executor = self.job.spec.executor.as_deref()?;
        let circle = self.job.spec.circle.as_deref();
        found_out
            .map(str::to_owned)
            .or_else(|| not_cancelable_because(self.executors, self.policy, circle, executor))
    }

    /// What the schema of a status has no place for: also how it is stopped, or why it cannot be, while it is not over.
    fn steerable_extensions(&self) -> DeferredExtensions {
        let extensions = self.extensions();
        if self.word().is_terminal() {
            return extensions;
        }
        match (self.cancel_unavailable_reason(), handle::of_job(self.job)) {
            (None, Some((handle, _))) => {
                DeferredExtensions { cancel_href: Some(href(&handle, "cancel")), ..extensions }
            }
            (cancel_unavailable_reason, _) => DeferredExtensions { cancel_unavailable_reason, ..extensions },
        }
    }

    /// The operation that the job waits for.
    pub(super) fn open_operation(&self) -> Option<&Operation> {
        let JobState::AwaitingExternal { operation, .. } = &self.job.state else { return None };
        self.operation.filter(|newest| newest.id == *operation && newest.ended.is_none())
    }

    fn extensions(&self) -> DeferredExtensions {
        let executor = self.job.spec.executor.as_deref().unwrap_or_default();
        let module = self
            .executors
            .find(self.job.spec.circle.as_deref(), executor)
            .map(|executor| executor.specialist.name().into_owned());
        let directed = handle::is_directive(self.job);
        DeferredExtensions {
            attempt_no: self.operation.map_or(0, |operation| operation.polls),
            owner_module_id: module.unwrap_or_else(|| executor.to_owned()),
            capability_id: if directed { handle::DIRECTIVE_KIND } else { executor }.to_owned(),
            action_id: directed.then(|| executor.to_owned()),
            job_id: self.job.id.as_str().to_owned(),
            cancel_href: None,
            cancel_unavailable_reason: None,
            catalog_digest: self.job.spec.catalog_digest.clone(),
            persistence: self.persistence(),
            clamps: self.clamps(),
            limits: ended_by(self.job, self.operation, self.policy).into_iter().map(limit::shown).collect(),
        }
    }

    /// What is said of work that does not outlive its daemon: as it was granted, or as it will be.
    fn persistence(&self) -> Option<String> {
        let will_be = || {
            let executor = self.job.spec.executor.as_deref()?;
            Some(self.policy.for_kind_in(self.job.spec.circle.as_deref(), executor).persistence)
        };
        let granted = self.operation.map(|operation| operation.policy.persistence).or_else(will_be)?;
        (granted == Persistence::Volatile).then(|| granted.as_str().to_owned())
    }

    /// What was asked for of the host by its caller and its service, and granted otherwise.
    fn clamps(&self) -> Vec<api::Clamp> {
        let of_operation = self.operation.map(Operation::clamps).unwrap_or_default();
        self.clamp_of_deadline().into_iter().chain(of_operation).map(limit::clamp).collect()
    }

    /// The same of a call that was just accepted: what its caller and its executor's entry ask for.
    fn clamps_of_call(&self, capability: &Capability) -> Vec<api::Clamp> {
        let Modes { retry_after, max_ttl, .. } = capability.modes;
        let of_entry = capability.policy.clamps(retry_after.seconds(), max_ttl.seconds());
        self.clamp_of_deadline().into_iter().chain(of_entry).map(limit::clamp).collect()
    }

    /// A deadline of the caller that lies beyond the life that was granted.
    fn clamp_of_deadline(&self) -> Option<Clamp> {
        let spec = &self.job.spec;
        let (asked, granted) = (spec.deadline_at?, spec.expires_at?);
        let since = |at: Timestamp| at.micros().saturating_sub(self.job.created_at.micros()) / 1_000_000;
        (granted < asked).then(|| Clamp {
            limit: "max_ttl_seconds",
            asked_seconds: since(asked),
            granted_seconds: since(granted),
        })
    }

    /// Whether another attempt may be asked for: it failed, what it was asked to do is still there, and so is time for it.
    pub(super) fn may_be_retried(&self, now: Timestamp) -> bool {
        let failed = matches!(self.job.state, JobState::Failed | JobState::Unavailable { .. });
        let in_time = self.job.expires_at().is_none_or(|end| now < end);
        failed && in_time && self.job.purged_at.is_none() && self.job.spec.executor.is_some()
    }

    fn updated_at(&self) -> Timestamp {
        let of_operation = self.operation.map(|operation| operation.updated_at);
        of_operation.map_or(self.job.updated_at, |at| at.max(self.job.updated_at))
    }

    fn expires_at(&self) -> Option<Timestamp> {
        let of_operation = self.open_operation().map(|operation| operation.expires_at);
        of_operation.into_iter().chain(self.job.expires_at()).min()
    }

    /// Who is called with the result of what goes on outside.
    fn continuation_owner(&self) -> Option<String> {
        let resumes =
            matches!(self.job.state, JobState::AwaitingExternal { then: AfterExternal::Resume, .. });
        resumes.then(|| self.job.spec.executor.clone())?
    }

    fn diagnostic(&self) -> Option<DeferredDiagnostic> {
        let reason = self.job.state_reason.clone();
        let waits = matches!(self.job.state, JobState::AwaitingInput | JobState::Blocked);
        let waits = waits.then(|| self.job.state.name().as_str().to_owned());
        let of_operation = || Some(self.operation?.diagnostics.last()?.code.clone());
        waits.or(reason).or_else(of_operation).map(|code| DeferredDiagnostic { code })
    }
}

/// Seconds until the next question to the service, within what the schema takes.
fn wait(open: &Operation, now: Timestamp) -> u32 {
    let micros = open.next_poll_at.micros().saturating_sub(now.micros());
    let seconds = u32::try_from(micros.max(0).unsigned_abs().div_ceil(1_000_000))
        .unwrap_or(RETRY_AFTER_CEILING_SECONDS);
    seconds.clamp(1, RETRY_AFTER_CEILING_SECONDS)
}

fn digest(body: BodyRef) -> String {
    format!("sha256:{}", body.sha256)
}

fn diagnostics_digest(operation: &Operation) -> Option<String> {
    if operation.diagnostics.is_empty() {
        return None;
    }
    let text = serde_json::to_vec(&operation.diagnostics).expect("it has only string keys");
    Some(format!("sha256:{}", store::sha256(&text)))
}
