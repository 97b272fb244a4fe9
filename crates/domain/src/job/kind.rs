//! Jobs as one kind of record.

use super::command::JobCommand;
use super::details::ResultRefs;
use super::fact::JobFact;
use super::state::Job;
use crate::BodyRef;
use crate::kind::{Kind, Removal, Summary};

impl Kind for Job {
    fn has_timers(&self) -> bool {
        Job::has_timers(self)
    }

    fn is_over(&self) -> bool {
        self.state.name().is_terminal()
    }

    fn named_bodies(&self) -> Vec<BodyRef> {
        self.bodies.clone()
    }

    fn stores_body(&self, body: BodyRef) -> bool {
        let results = std::iter::once(&self.result)
            .chain(self.attempts.iter().filter_map(|attempt| Some(&attempt.end.as_ref()?.result)))
            .filter(|_| self.purged_at.is_none());
        let named = self.bodies.iter().chain(&self.answers);
        named.chain(results.flat_map(ResultRefs::bodies)).any(|named| *named == body)
    }

    fn summary(&self) -> Summary<'_> {
        Summary {
            status: self.state.name().as_str(),
            name: self.spec.executor.as_deref().unwrap_or_default(),
            circle: self.spec.circle.as_deref(),
            key: None,
            began_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

impl Job {
    /// Whether its older facts go while it is open.
    pub(crate) const IS_CHECKPOINTED: bool = false;
}

impl JobCommand {
    /// Whether it asks for a new record: refused first when too much waits.
    pub(crate) const fn is_new_work(&self) -> bool {
        matches!(self, Self::Create(_))
    }
}

impl JobFact {
    /// How the names begin under which they are stored.
    pub(crate) const KIND_PREFIXES: &'static [&'static str] = &["job."];

    /// The name and version under which it is stored: never changed once it was released.
    pub(crate) const fn kind_name(&self) -> &'static str {
        match self {
            Self::Created(_) => "job.created/1",
            Self::Dispatched { .. } => "job.dispatched/1",
            Self::Delivered => "job.delivered/1",
            Self::Started(_) => "job.started/1",
            Self::InputAwaited(_) => "job.input_awaited/1",
            Self::Blocked(_) => "job.blocked/1",
            Self::SubmitIntended(_) => "job.submit_intended/1",
            Self::Deferred { .. } => "job.deferred/1",
            Self::ExternalArrived(_) => "job.external_arrived/1",
            Self::Answered(_) => "job.answered/1",
            Self::Resumed => "job.resumed/1",
            Self::Noted(_) => "job.noted/1",
            Self::Completed(_) => "job.completed/1",
            Self::Failed(_) => "job.failed/1",
            Self::Requeued { .. } => "job.requeued/1",
            Self::CancelRequested { .. } => "job.cancel_requested/1",
            Self::CancelRepeated { .. } => "job.cancel_repeated/1",
            Self::CancelRepeatsCounted { .. } => "job.cancel_repeats_counted/1",
            Self::CancelTried(_) => "job.cancel_tried/1",
            Self::CancelAnswered(_) => "job.cancel_answered/1",
            Self::Cancelled(_) => "job.cancelled/1",
            Self::Expired(_) => "job.expired/1",
            Self::BecameUnavailable(_) => "job.became_unavailable/1",
            Self::StaleReportKept(_) => "job.stale_report_kept/1",
            Self::StaleReportsCounted { .. } => "job.stale_reports_counted/1",
            Self::ExecutorReleased { .. } => "job.executor_released/1",
            Self::TimersMoved { .. } => "job.timers_moved/1",
            Self::Purged => "job.purged/1",
            Self::Retired => "job.retired/1",
        }
    }

    /// What it takes away.
    pub(crate) const fn removal(&self) -> Removal {
        if matches!(self, Self::Retired) {
            Removal::Record
        } else if matches!(self, Self::Purged) {
            Removal::Bodies
        } else {
            Removal::Nothing
        }
    }
}
