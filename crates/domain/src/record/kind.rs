//! What every kind of record answers, so that the write path, the stores and the workers are one for all of them.
//!
//! A kind implements `Kind` in a `kind.rs` of its own and stands in the one list of `record.rs`; its `fact.rs` names its facts. What may
//! happen to its records is a plain match in its `decide.rs`; nothing is decided here.

use crate::{BodyRef, Timestamp};

/// The state of a record of one kind, folded from its facts.
pub trait Kind {
    /// Whether it has reached its end.
    fn is_over(&self) -> bool;

    /// Whether it holds times that measure time that passed.
    fn has_timers(&self) -> bool {
        false
    }

    /// Whether time still brings something about for it other than its retirement.
    fn waits_for_time(&self) -> bool {
        !self.is_over()
    }

    /// The bodies that its state names, newest of each name. A purge takes the names away too, and a checkpoint all other bodies.
    fn named_bodies(&self) -> Vec<BodyRef>;

    /// Whether this body must be stored with it. A purge removes the bodies, and leaves the digests in results.
    fn stores_body(&self, body: BodyRef) -> bool {
        self.named_bodies().contains(&body)
    }

    /// What it is listed and filtered by.
    fn summary(&self) -> Summary<'_>;
}

/// What a record is listed and filtered by, whatever its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary<'a> {
    /// Where it is, in a word.
    pub status: &'static str,
    /// What records of its kind are grouped by: the type of an event, the pipeline of a run.
    pub name: &'a str,
    /// Who may see it.
    pub circle: Option<&'a str>,
    /// The deduplication key.
    pub key: Option<&'a str>,
    /// When it began.
    pub began_at: Timestamp,
    /// When anything last happened to it.
    pub updated_at: Timestamp,
}

/// What a fact or a change takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Nothing.
    Nothing,
    /// The record's bodies.
    Bodies,
    /// Those of them that tell of errors.
    Errors,
    /// The facts before its newest checkpoint, and the bodies that its state does not name.
    OlderFacts,
    /// The whole record: view, agenda, bodies and facts, and the keys whose time has passed.
    Record,
}
