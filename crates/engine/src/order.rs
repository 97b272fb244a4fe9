//! Orders: a command for a record, and what comes with it.

use std::fmt;
use std::sync::Arc;

use domain::{Command, Consequence, Digest, Fence, JobId, Record, RecordId, Timestamp};
use store::{IdempotencyKey, KeptKey, NewBody};

use crate::StateUpdate;

/// A command and everything that its commit needs besides.
#[derive(Clone, Debug)]
pub struct Order {
    /// The record that it is for.
    pub record: RecordId,
    /// What is ordered.
    pub command: Command,
    /// What is ordered of the same record right after, in the same commit: all or nothing.
    pub then: Vec<Command>,
    /// What is ordered of other records, in the same commit, when all that follows from the rest is decided: all or nothing.
    pub also: Vec<Consequence>,
    /// The job whose word decides, if `also` and the state of a plugin belong to a result: nothing is done of them if the job does not
    /// take it.
    pub result_of: Option<JobId>,
    /// Who orders it.
    pub actor: Arc<str>,
    /// What caused it.
    pub causation_id: Option<Arc<str>>,
    /// What joins it to other work.
    pub correlation_id: Option<Arc<str>>,
    /// The claim under which it is given.
    pub fence: Option<Fence>,
    /// The claims under which what is ordered of other records is given, if it is under any.
    pub fences: Vec<(RecordId, Fence)>,
    /// The bodies that the command refers to.
    pub bodies: Vec<OrderBody>,
    /// The idempotency keys that it uses up.
    pub keys: Vec<OrderKey>,
    /// What a plugin remembers of it.
    pub plugin_state: Option<StateUpdate>,
}

/// A key that an order uses up, and how its answer reads.
#[derive(Clone)]
pub struct OrderKey {
    /// The key.
    pub key: IdempotencyKey,
    /// The digest of the request: the same key with another one is a conflict.
    pub request_sha256: Digest,
    /// When it may be forgotten.
    pub keep_until: Timestamp,
    /// The answer, from the record as the order leaves it. The same record gives the same bytes.
    pub render: RenderAnswer,
}

/// Writes the answer to an order from the record as the order leaves it.
pub type RenderAnswer = Arc<dyn Fn(&Record) -> Vec<u8> + Send + Sync>;

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
            then: Vec::new(),
            also: Vec::new(),
            result_of: None,
            actor,
            causation_id: None,
            correlation_id: None,
            fence: None,
            fences: Vec::new(),
            bodies: Vec::new(),
            keys: Vec::new(),
            plugin_state: None,
        }
    }

    /// The same order, given under a claim.
    pub fn under(mut self, fence: Fence) -> Self {
        self.fence = Some(fence);
        self
    }

    /// The claim under which a record is changed.
    pub(crate) fn fence_of(&self, id: &RecordId) -> Option<Fence> {
        if *id == self.record {
            return self.fence.clone();
        }
        self.fences.iter().find(|(other, _)| other == id).map(|(_, fence)| fence.clone())
    }
}

impl OrderKey {
    /// The key with the answer that is replayed from now on.
    pub(crate) fn answered(&self, id: &RecordId, record: &Record) -> KeptKey {
        KeptKey {
            key: self.key.clone(),
            request_sha256: self.request_sha256,
            record: id.clone(),
            answer: Arc::from((self.render)(record)),
            keep_until: self.keep_until,
        }
    }
}

impl fmt::Debug for OrderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderKey").field("key", &self.key).finish_non_exhaustive()
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
