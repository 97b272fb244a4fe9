//! Jobs as one kind of record.

use super::command::JobCommand;
use super::details::ResultRefs;
use super::fact::JobFact;
use super::state::Job;
use super::{apply, decide, decide_new};
use crate::attention::{Attention, Retention};
use crate::kind::{Kind, Removal, Summary};
use crate::{BodyRef, Decision, Jitter, JobId, Misfold, Timestamp};

impl Kind for Job {
    type Id = JobId;
    type Command = JobCommand;
    type Fact = JobFact;

    const FACT_PREFIXES: &'static [&'static str] = &["job."];

    fn decide_new(id: &JobId, command: &JobCommand, now: Timestamp) -> Decision<JobFact> {
        decide_new(id, command, now)
    }

    fn decide(&self, command: &JobCommand, now: Timestamp) -> Decision<JobFact> {
        decide(self, command, now)
    }

    fn begin(id: &JobId, fact: &JobFact, at: Timestamp) -> Option<Self> {
        if let JobFact::Created(new) = fact { Some(Self::new(id.clone(), new, at)) } else { None }
    }

    fn apply(&mut self, fact: &JobFact, at: Timestamp) -> Result<(), Misfold> {
        apply(self, fact, at)
    }

    fn schedule(&self, retention: Retention) -> Attention {
        self.attention(retention)
    }

    fn due_command(
        &self,
        retention: Retention,
        jitter: impl FnOnce() -> Jitter,
        now: Timestamp,
    ) -> Option<JobCommand> {
        Job::due_command(self, retention, jitter(), now)
    }

    fn has_timers(&self) -> bool {
        Job::has_timers(self)
    }

    fn move_timers(by_micros: i64) -> JobCommand {
        JobCommand::MoveTimers { by_micros }
    }

    fn is_move(command: &JobCommand) -> bool {
        matches!(command, JobCommand::MoveTimers { .. })
    }

    fn moved_by(fact: &JobFact) -> Option<i64> {
        if let JobFact::TimersMoved { by_micros } = fact { Some(*by_micros) } else { None }
    }

    fn id(&self) -> &JobId {
        &self.id
    }

    fn set_id(&mut self, id: JobId) {
        self.id = id;
    }

    fn updated_at(&self) -> Timestamp {
        self.updated_at
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

    fn is_new_work(command: &JobCommand) -> bool {
        matches!(command, JobCommand::Create(_))
    }

    fn needs_claim(command: &JobCommand) -> bool {
        command.needs_claim()
    }

    fn fact_kind(fact: &JobFact) -> &'static str {
        match fact {
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
            JobFact::CancelRepeated { .. } => "job.cancel_repeated/1",
            JobFact::CancelRepeatsCounted { .. } => "job.cancel_repeats_counted/1",
            JobFact::CancelTried(_) => "job.cancel_tried/1",
            JobFact::CancelAnswered(_) => "job.cancel_answered/1",
            JobFact::Cancelled(_) => "job.cancelled/1",
            JobFact::Expired(_) => "job.expired/1",
            JobFact::BecameUnavailable(_) => "job.became_unavailable/1",
            JobFact::StaleReportKept(_) => "job.stale_report_kept/1",
            JobFact::StaleReportsCounted { .. } => "job.stale_reports_counted/1",
            JobFact::ExecutorReleased { .. } => "job.executor_released/1",
            JobFact::TimersMoved { .. } => "job.timers_moved/1",
            JobFact::Purged => "job.purged/1",
            JobFact::Retired => "job.retired/1",
        }
    }

    fn removal(fact: &JobFact) -> Removal {
        if matches!(fact, JobFact::Retired) {
            Removal::Record
        } else if matches!(fact, JobFact::Purged) {
            Removal::Bodies
        } else {
            Removal::Nothing
        }
    }
}
