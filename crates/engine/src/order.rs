//! Orders: a command for a record, and what comes with it.

use std::sync::Arc;

use domain::{Command, Fence, Record, RecordId};
use store::{KeptKey, NewBody};

/// A command and everything that its commit needs besides.
#[derive(Clone, Debug)]
pub struct Order {
    /// The record that it is for.
    pub record: RecordId,
    /// What is ordered.
    pub command: Command,
    /// Who orders it.
    pub actor: Arc<str>,
    /// What caused it.
    pub causation_id: Option<Arc<str>>,
    /// What joins it to other work.
    pub correlation_id: Option<Arc<str>>,
    /// The claim under which it is given.
    pub fence: Option<Fence>,
    /// The bodies that the command refers to.
    pub bodies: Vec<OrderBody>,
    /// The idempotency key that it uses up.
    pub keys: Vec<KeptKey>,
}

/// A body, and the record that it belongs to.
#[derive(Clone, Debug)]
pub struct OrderBody {
    /// The record.
    pub record: RecordId,
    /// The body.
    pub body: NewBody,
}

/// What came of an order.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It happened, and is on stable storage.
    Changed {
        /// The record afterwards.
        record: Arc<Record>,
        /// The ledger's position of its last fact.
        position: u64,
    },
    /// It was so already.
    AlreadySo {
        /// The record.
        record: Arc<Record>,
    },
}

impl Order {
    /// A plain order.
    pub fn new(record: impl Into<RecordId>, command: impl Into<Command>, actor: Arc<str>) -> Self {
        Self {
            record: record.into(),
            command: command.into(),
            actor,
            causation_id: None,
            correlation_id: None,
            fence: None,
            bodies: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// The same order, given under a claim.
    pub fn under(mut self, fence: Fence) -> Self {
        self.fence = Some(fence);
        self
    }
}

impl Outcome {
    /// The record afterwards.
    pub fn record(&self) -> &Arc<Record> {
        match self {
            Self::Changed { record, .. } | Self::AlreadySo { record } => record,
        }
    }
}
