//! Operations as one kind of record.

use super::command::OperationCommand;
use super::fact::OperationFact;
use super::state::Operation;
use crate::BodyRef;
use crate::kind::{Kind, Removal, Summary};

impl Kind for Operation {
    fn has_timers(&self) -> bool {
        Operation::has_timers(self)
    }

    /// After its end as well: what may still run outside is asked to stop, and asked about.
    fn waits_for_time(&self) -> bool {
        Operation::has_timers(self)
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
}

impl Operation {
    /// Whether its older facts go while it is open: it may be polled for weeks.
    pub(crate) const IS_CHECKPOINTED: bool = true;
}

impl OperationCommand {
    /// It never asks for a new record: that comes with work that was accepted.
    pub(crate) const fn is_new_work(&self) -> bool {
        false
    }

    /// Whether only the holder of the claim may order it.
    pub(crate) const fn needs_claim(&self) -> bool {
        false
    }
}

impl OperationFact {
    /// How the names begin under which they are stored.
    pub(crate) const KIND_PREFIXES: &'static [&'static str] = &[
        "operation.",
        "external_production_dispatched/1",
        "external_production_polled/1",
        "external_production_resolved/1",
    ];

    /// The name and version under which it is stored: never changed once it was released.
    pub(crate) const fn kind_name(&self) -> &'static str {
        match self {
            // Loomworks' three names, word for word.
            Self::Dispatched(_) => "external_production_dispatched/1",
            Self::Polled(_) => "external_production_polled/1",
            Self::Resolved(_) => "external_production_resolved/1",
            Self::CancelRequested { .. } => "operation.cancel_requested/1",
            Self::CancelAnswered { .. } => "operation.cancel_answered/1",
            Self::Cancelled => "operation.cancelled/1",
            Self::Expired { .. } => "operation.expired/1",
            Self::HandleLearned { .. } => "operation.handle_learned/1",
            Self::Settled(_) => "operation.settled/1",
            Self::LatePolled(_) => "operation.late_polled/1",
            Self::Contradicted { .. } => "operation.contradicted/1",
            Self::TimersMoved { .. } => "operation.timers_moved/1",
            Self::Purged { .. } => "operation.purged/1",
            Self::Retired => "operation.retired/1",
        }
    }

    /// What it takes away.
    pub(crate) const fn removal(&self) -> Removal {
        if matches!(self, Self::Retired) {
            Removal::Record
        } else if let Self::Purged { handle_kept } = self {
            if *handle_kept { Removal::Errors } else { Removal::Bodies }
        } else {
            Removal::Nothing
        }
    }
}
