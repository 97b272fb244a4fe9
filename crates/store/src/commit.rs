//! A commit: everything that one step changes, all or nothing.

use std::sync::Arc;

use domain::ask::AskChange;
use domain::attention::Entry;
use domain::{BodyRef, Fact, Fence, Lease, Record, RecordId, Removal, Timestamp};

use crate::asks::check_ask;
use crate::query::Head;
use crate::{FactId, IdempotencyKey, KeptKey, MAX_PLUGIN_STATES, PluginStateChange, StoreError};

/// The limits of one commit, by name.
pub mod limits {
    /// Records that one commit may span.
    pub const MAX_CHANGES: usize = 1_001;
    /// Facts on one record in one commit.
    pub const MAX_FACTS_PER_CHANGE: usize = 64;
    /// Bytes of bodies in one commit.
    pub const MAX_BODY_BYTES_PER_COMMIT: usize = 16 * 1_048_576;
    /// Idempotency keys that one commit may use up.
    pub const MAX_KEYS: usize = 100;
    /// Bytes of each text of an idempotency key: principal, route, the sender's name for it.
    pub const MAX_KEY_TEXT_BYTES: usize = 1_024;
    /// Bytes of each text that every fact carries: actor, causation, correlation.
    pub const MAX_CONTEXT_TEXT_BYTES: usize = 512;
    /// Bytes of one stored answer.
    pub const MAX_ANSWER_BYTES: usize = 65_536;
    /// Bytes of one fact's payload.
    pub const MAX_FACT_BYTES: usize = 65_536;
    /// Bytes of the payload of a checkpoint, which holds a whole state: as many as of a body. A larger state is not checkpointed, and its
    /// record keeps all of its facts.
    pub const MAX_CHECKPOINT_BYTES: usize = domain::limits::MAX_BODY_BYTES;
    /// Keys that outlived their records and are forgotten by one commit that writes keys.
    pub const MAX_FORGOTTEN_KEYS: usize = 100;
    /// Jobs that one page of a list looks at, whether they fit or not.
    pub const MAX_EXAMINED: usize = 5_000;
    /// Rows in one page of any read.
    pub const MAX_PAGE: usize = 1_000;
}

/// One step: facts, the states that they lead to, bodies, agenda, idempotency keys.
#[derive(Clone, Debug)]
pub struct Commit {
    /// When it was decided.
    pub at: Timestamp,
    /// Who did it.
    pub actor: Arc<str>,
    /// What caused it.
    pub causation_id: Option<Arc<str>>,
    /// What joins it to other work.
    pub correlation_id: Option<Arc<str>>,
    /// One per record, each record at most once.
    pub changes: Vec<Change>,
    /// Keys that must not have been used before.
    pub keys: Vec<KeptKey>,
    /// Asks that follow from it: coordination, written with it.
    pub asks: Vec<AskChange>,
    /// What plugins remember of it, each plugin at most once.
    pub plugin_states: Vec<PluginStateChange>,
    /// Whether it may be refused first when too many commits wait.
    pub urgency: Urgency,
    /// The lease of whoever commits: for a record that goes on after a pause and has no lease of its own.
    pub lease: Lease,
}

/// Who goes first when commits wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Results and everything about accepted work.
    Result,
    /// New work: refused first.
    NewWork,
}

/// What happens to one record.
#[derive(Clone, Debug)]
pub struct Change {
    /// The record.
    pub id: RecordId,
    /// The head that the decision was made on; version 0 if the record must not exist.
    pub expected: Head,
    /// What happened; none if only the agenda is brought up to date.
    pub facts: Vec<NewFact>,
    /// The state after the facts.
    pub record: Arc<Record>,
    /// Bodies that come with it.
    pub bodies: Vec<NewBody>,
    /// What the agenda says afterwards.
    pub agenda: Entry,
    /// The claim under which it is done, checked in the same transaction.
    pub fence: Option<Fence>,
    /// What goes away with it.
    pub removal: Removal,
}

/// A fact to write.
#[derive(Clone, Debug)]
pub struct NewFact {
    /// The caller's name for it.
    pub id: FactId,
    /// What happened.
    pub fact: Fact,
}

/// A body to write.
#[derive(Clone, Debug)]
pub struct NewBody {
    /// Its reference, as the facts hold it.
    pub body: BodyRef,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
}

/// A commit is on stable storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The position of its last fact; 0 if it had none.
    pub position: u64,
}

impl Commit {
    /// Refuses a commit that is over its limits or does not fit together, before anything is queued.
    pub fn check(&self) -> Result<(), StoreError> {
        within(self.changes.len(), "records in one commit", limits::MAX_CHANGES)?;
        let context = [Some(&self.actor), self.causation_id.as_ref(), self.correlation_id.as_ref()];
        for text in context.into_iter().flatten() {
            within(text.len(), "actor, causation or correlation", limits::MAX_CONTEXT_TEXT_BYTES)?;
        }
        let mut body_bytes = 0;
        let mut touched = std::collections::BTreeSet::new();
        for change in &self.changes {
            if !touched.insert(&change.id) {
                return Err(StoreError::Broken(format!("the commit changes {} twice", change.id)));
            }
            body_bytes += change.check()?;
        }
        within(body_bytes, "bodies in one commit", limits::MAX_BODY_BYTES_PER_COMMIT)?;
        within(self.keys.len(), "keys in one commit", limits::MAX_KEYS)?;
        within(self.asks.len(), "asks in one commit", limits::MAX_CHANGES)?;
        self.asks.iter().try_for_each(check_ask)?;
        self.check_plugin_states()?;
        self.keys.iter().try_for_each(KeptKey::check)
    }

    /// Whether it only brings the agenda up to date: that follows from the facts, and is done again if it is lost.
    pub fn tells_nothing(&self) -> bool {
        let Self { changes, keys, asks, plugin_states, .. } = self;
        let all_told = |change: &Change| {
            change.facts.is_empty() && change.bodies.is_empty() && change.removal == Removal::Nothing
        };
        keys.is_empty() && asks.is_empty() && plugin_states.is_empty() && changes.iter().all(all_told)
    }

    fn check_plugin_states(&self) -> Result<(), StoreError> {
        within(self.plugin_states.len(), "plugin states in one commit", MAX_PLUGIN_STATES)?;
        let mut touched = std::collections::BTreeSet::new();
        for change in &self.plugin_states {
            change.check()?;
            if !touched.insert(&change.plugin) {
                let told = format!("the commit changes the state of {:?} twice", change.plugin);
                return Err(StoreError::Broken(told));
            }
        }
        Ok(())
    }
}

impl Change {
    /// The version of its checkpoint, if it has one.
    pub fn checkpoint_version(&self) -> Option<u64> {
        let versions = self.expected.version + 1..;
        let is_checkpoint = |new: &NewFact| matches!(new.fact, Fact::Checkpointed { .. });
        versions.zip(&self.facts).find(|(_, new)| is_checkpoint(new)).map(|(version, _)| version)
    }

    /// The bytes of its bodies, if it is within its limits.
    fn check(&self) -> Result<usize, StoreError> {
        let id = &self.id;
        within(id.as_str().len(), "id", domain::limits::MAX_ID_BYTES)?;
        // Stored, it could not be read back, and every walk over the ledger or the agenda would end there.
        if RecordId::parse(id.as_str()).as_ref() != Ok(id) {
            return Err(StoreError::Broken(format!("{:?} names no record", id.as_str())));
        }
        within(self.facts.len(), "facts on one record", limits::MAX_FACTS_PER_CHANGE)?;
        if self.removal == Removal::OlderFacts && self.checkpoint_version().is_none() {
            return Err(StoreError::Broken(format!("older facts of {id} cannot go without a checkpoint")));
        }
        // No fact would name them, and nothing would show that they are there.
        if self.facts.is_empty() && !self.bodies.is_empty() {
            return Err(StoreError::Broken(format!("the commit has bodies and no facts for {id}")));
        }
        let mut bytes = 0;
        for NewBody { body, bytes: given } in &self.bodies {
            within(given.len(), body.name.as_str(), domain::limits::MAX_BODY_BYTES)?;
            if given.len() as u64 != body.size {
                return Err(StoreError::Broken(format!(
                    "the {} of {id} has {} bytes, its reference says {}",
                    body.name.as_str(),
                    given.len(),
                    body.size
                )));
            }
            bytes += given.len();
        }
        Ok(bytes)
    }
}

impl NewFact {
    /// Refuses a payload over the limit of this fact.
    pub fn check_payload(&self, payload: &str) -> Result<(), StoreError> {
        if let Fact::Checkpointed { .. } = self.fact {
            return within(payload.len(), "checkpoint", limits::MAX_CHECKPOINT_BYTES);
        }
        within(payload.len(), "fact", limits::MAX_FACT_BYTES)
    }
}

impl KeptKey {
    fn check(&self) -> Result<(), StoreError> {
        let IdempotencyKey { principal, route, key } = &self.key;
        for text in [principal, route, key] {
            within(text.len(), "text of an idempotency key", limits::MAX_KEY_TEXT_BYTES)?;
        }
        within(self.answer.len(), "stored answer", limits::MAX_ANSWER_BYTES)
    }
}

fn within(count: usize, what: &'static str, limit: usize) -> Result<(), StoreError> {
    if count > limit { Err(StoreError::TooLarge { what, limit }) } else { Ok(()) }
}
