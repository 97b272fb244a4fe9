//! Operations as one kind of record.

use super::command::OperationCommand;
use super::fact::OperationFact;
use super::state::Operation;
use super::{apply, decide, decide_new};
use crate::attention::{Attention, Retention};
use crate::kind::{Kind, Removal, Summary};
use crate::{BodyRef, Decision, Jitter, Misfold, OperationId, Timestamp};

impl Kind for Operation {
    type Id = OperationId;
    type Command = OperationCommand;
    type Fact = OperationFact;

    const FACT_PREFIXES: &'static [&'static str] = &[
        "operation.",
        "external_production_dispatched/1",
        "external_production_polled/1",
        "external_production_resolved/1",
    ];

    fn decide_new(id: &OperationId, command: &OperationCommand, now: Timestamp) -> Decision<OperationFact> {
        decide_new(id, command, now)
    }

    fn decide(&self, command: &OperationCommand, now: Timestamp) -> Decision<OperationFact> {
        decide(self, command, now)
    }

    fn begin(id: &OperationId, fact: &OperationFact, at: Timestamp) -> Option<Self> {
        if let OperationFact::Dispatched(new) = fact { Some(Self::new(id.clone(), new, at)) } else { None }
    }

    fn apply(&mut self, fact: &OperationFact, at: Timestamp) -> Result<(), Misfold> {
        apply(self, fact, at)
    }

    fn schedule(&self, retention: Retention) -> Attention {
        self.attention(retention)
    }

    fn due_command(
        &self,
        retention: Retention,
        _: impl FnOnce() -> Jitter,
        now: Timestamp,
    ) -> Option<OperationCommand> {
        Operation::due_command(self, retention, now)
    }

    fn has_timers(&self) -> bool {
        Operation::has_timers(self)
    }

    /// After its end as well: what may still run outside is asked to stop, and asked about.
    fn waits_for_time(&self) -> bool {
        Operation::has_timers(self)
    }

    fn move_timers(by_micros: i64) -> OperationCommand {
        OperationCommand::MoveTimers { by_micros }
    }

    fn is_move(command: &OperationCommand) -> bool {
        matches!(command, OperationCommand::MoveTimers { .. })
    }

    fn moved_by(fact: &OperationFact) -> Option<i64> {
        if let OperationFact::TimersMoved { by_micros } = fact { Some(*by_micros) } else { None }
    }

    fn id(&self) -> &OperationId {
        &self.id
    }

    fn set_id(&mut self, id: OperationId) {
        self.id = id;
    }

    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    fn named_bodies(&self) -> Vec<BodyRef> {
        self.bodies().copied().collect()
    }

    fn stores_body(&self, body: BodyRef) -> bool {
        self.handle == Some(body)
    }

    fn summary(&self) -> Summary<'_> {
        Summary {
            status: self.status().as_str(),
            name: &self.link.kind,
            circle: self.link.circle.as_deref(),
            key: None,
            began_at: self.dispatched_at,
            updated_at: self.updated_at,
        }
    }

    /// It comes with work that was accepted.
    fn is_new_work(_: &OperationCommand) -> bool {
        false
    }

    fn fact_kind(fact: &OperationFact) -> &'static str {
        match fact {
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
            OperationFact::Purged { .. } => "operation.purged/1",
            OperationFact::Retired => "operation.retired/1",
        }
    }

    fn removal(fact: &OperationFact) -> Removal {
        if matches!(fact, OperationFact::Retired) {
            Removal::Record
        } else if let OperationFact::Purged { handle_kept } = fact {
            if *handle_kept { Removal::Errors } else { Removal::Bodies }
        } else {
            Removal::Nothing
        }
    }
}
