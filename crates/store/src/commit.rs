//! A commit: everything that one step changes, all or nothing.

use std::sync::Arc;

use domain::attention::Entry;
use domain::{BodyRef, Fact, Fence, Record, RecordId, Timestamp};

use crate::query::Head;
use crate::{FactId, KeptKey, StoreError};

/// The limits of one commit, by name.
pub mod limits {
    /// Records that one commit may span.
    pub const MAX_CHANGES: usize = 1_001;
    /// Facts on one record in one commit.
    pub const MAX_FACTS_PER_CHANGE: usize = 64;
    /// Bytes of bodies in one commit.
    pub const MAX_BODY_BYTES_PER_COMMIT: usize = 16 * 1_048_576;
    /// Bytes of one stored answer.
    pub const MAX_ANSWER_BYTES: usize = 65_536;
    /// Bytes of one fact's payload.
    pub const MAX_FACT_BYTES: usize = 65_536;
    /// Keys that outlived their records and are forgotten by one commit that writes keys.
    pub const MAX_FORGOTTEN_KEYS: usize = 100;
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
    /// Whether it may be refused first when too many commits wait.
    pub urgency: Urgency,
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

/// What a change takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Nothing.
    Nothing,
    /// The record's bodies.
    Bodies,
    /// The whole record: view, agenda, bodies and facts, and the keys whose time has passed.
    Record,
}

/// A commit is on stable storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The position of its last fact; 0 if it had none.
    pub position: u64,
}

impl Commit {
    /// Refuses a commit over its limits, before anything is queued.
    pub fn check(&self) -> Result<(), StoreError> {
        let within = |count: usize, what: &'static str, limit: usize| {
            if count > limit { Err(StoreError::TooLarge { what, limit }) } else { Ok(()) }
        };
        within(self.changes.len(), "records in one commit", limits::MAX_CHANGES)?;
        let mut body_bytes = 0;
        let mut touched = std::collections::BTreeSet::new();
        for change in &self.changes {
            if !touched.insert(&change.id) {
                return Err(StoreError::Broken(format!("the commit changes {} twice", change.id)));
            }
            within(change.id.as_str().len(), "id", domain::limits::MAX_ID_BYTES)?;
            // Stored, it could not be read back, and every walk over the ledger or the agenda would end there.
            if RecordId::parse(change.id.as_str()).as_ref() != Ok(&change.id) {
                return Err(StoreError::Broken(format!("{:?} names no record", change.id.as_str())));
            }
            within(change.facts.len(), "facts on one record", limits::MAX_FACTS_PER_CHANGE)?;
            for body in &change.bodies {
                within(body.bytes.len(), body.body.name.as_str(), domain::limits::MAX_BODY_BYTES)?;
                body_bytes += body.bytes.len();
            }
        }
        within(body_bytes, "bodies in one commit", limits::MAX_BODY_BYTES_PER_COMMIT)?;
        for key in &self.keys {
            within(key.answer.len(), "stored answer", limits::MAX_ANSWER_BYTES)?;
        }
        Ok(())
    }
}
