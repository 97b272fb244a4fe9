//! What every kind of record answers, so that the write path, the stores and the workers are one for all of them.
//!
//! A kind implements `Kind` in a `kind.rs` of its own and stands in the one list of `record.rs`. What may happen to its records is a plain
//! match in its `decide.rs`; nothing is decided here.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::attention::{Attention, Retention};
use crate::{BodyRef, Decision, Jitter, Misfold, Timestamp};

/// The state of a record of one kind, folded from its facts, and the rules of that kind.
pub trait Kind: Clone + Debug + PartialEq + Serialize + DeserializeOwned {
    /// What names one.
    type Id;
    /// What may be ordered of one.
    type Command;
    /// What may happen to one.
    type Fact: Serialize + DeserializeOwned;

    /// How the names begin under which its facts are stored.
    const FACT_PREFIXES: &'static [&'static str];

    /// Decides a command on a record that does not exist yet.
    fn decide_new(id: &Self::Id, command: &Self::Command, now: Timestamp) -> Decision<Self::Fact>;
    /// Decides a command on a record.
    fn decide(&self, command: &Self::Command, now: Timestamp) -> Decision<Self::Fact>;
    /// The record right after its first fact; none if no stream begins with this one.
    fn begin(id: &Self::Id, fact: &Self::Fact, at: Timestamp) -> Option<Self>;
    /// Folds one fact, recorded at this time, into the record.
    fn apply(&mut self, fact: &Self::Fact, at: Timestamp) -> Result<(), Misfold>;

    /// What the agenda must know of it.
    fn schedule(&self, retention: Retention) -> Attention;
    /// What time alone brings about, for whoever took it because it was due. Jitter is drawn only by those who need it.
    fn due_command(
        &self,
        retention: Retention,
        jitter: impl FnOnce() -> Jitter,
        now: Timestamp,
    ) -> Option<Self::Command>;
    /// Whether it holds times that measure time that passed.
    fn has_timers(&self) -> bool {
        false
    }
    /// Whether time still brings something about for it other than its retirement.
    fn waits_for_time(&self) -> bool {
        !self.is_over()
    }
    /// The command that moves its timers; negative if time went back.
    fn move_timers(by_micros: i64) -> Self::Command;
    /// Whether a command is such a move.
    fn is_move(command: &Self::Command) -> bool;
    /// By how much a fact moved the timers, if it did.
    fn moved_by(fact: &Self::Fact) -> Option<i64>;

    /// Its id.
    fn id(&self) -> &Self::Id;
    /// Gives it its id, which is not stored in its view.
    fn set_id(&mut self, id: Self::Id);
    /// When anything last happened to it.
    fn updated_at(&self) -> Timestamp;
    /// Whether it has reached its end.
    fn is_over(&self) -> bool;
    /// The bodies that its state names, newest of each name.
    fn named_bodies(&self) -> Vec<BodyRef>;
    /// Whether this body must be stored with it.
    fn stores_body(&self, body: BodyRef) -> bool {
        self.named_bodies().contains(&body)
    }
    /// What it is listed and filtered by.
    fn summary(&self) -> Summary<'_>;

    /// Whether a command asks for a new record: refused first when too much waits.
    fn is_new_work(command: &Self::Command) -> bool;
    /// Whether only the holder of the claim may order this.
    fn needs_claim(_: &Self::Command) -> bool {
        false
    }
    /// The name and version under which a fact is stored: never changed once it was released.
    fn fact_kind(fact: &Self::Fact) -> &'static str;
    /// What a fact takes away.
    fn removal(fact: &Self::Fact) -> Removal;
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
    /// The whole record: view, agenda, bodies and facts, and the keys whose time has passed.
    Record,
}
