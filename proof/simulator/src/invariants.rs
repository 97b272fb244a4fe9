//! What must hold after every step, whatever went wrong. The checker keeps its own fold of every stream and its own
//! copy of every claim; it believes the store nothing.
//!
//! By name: I0 acknowledged is present, I1 view equals fold, I2 one end per attempt,
//! I3 the end is of the newest attempt, I4 attempts rise, I5 one job per key, I6 no live lease taken, I7 an
//! operation's end is applied once, I8 polls within the host's bounds, I9 accepted result is recorded result,
//! I11 streams without gaps, I14 a cancel reaches what its job waits for, I15 an event is settled once and starts one run in each pipeline
//! that listens, I16 a run does each of its steps once and in order and ends as they ended, and P3 "no" means that nothing happened. The
//! others have a word for a name.

mod agenda;
mod claims;
mod effects;
mod jobs;
mod operations;
mod routing;
mod stale;
mod walks;
mod whole;

use std::collections::{BTreeMap, BTreeSet};

use domain::attention::{Place, Retention};
use domain::job::JobFact;
use domain::operation::OperationFact;
use domain::policy::KindPolicy;
use domain::record::apply;
use domain::{Claim, Digest, Fact, MAX_CONSEQUENCES, MAX_NOTIFIED, OperationId, Record, RecordId, Timestamp};
use store::{Change, Commit, Committed, FactId, IdempotencyKey, Removal, StoreError, StoredFact, fact_kind};

pub use claims::{From, Taking};
pub use effects::{Effect, Produced};
pub use whole::body_read;

use crate::counters::{Counters, Sometimes};
use crate::faults::MAX_SKEW;
use crate::orders::OrderTrace;
use effects::Acknowledged;
use jobs::Life;
use routing::Routing;
use stale::Refused;
use store::Tables;

/// Something that must never happen, and did.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The invariant.
    pub invariant: &'static str,
    /// What was found.
    pub text: String,
}

/// An invariant that does not hold.
pub fn broken<T>(invariant: &'static str, text: impl FnOnce() -> String) -> Result<T, Violation> {
    Err(Violation { invariant, text: text() })
}

/// The invariant holds, or not.
pub fn must(held: bool, invariant: &'static str, text: impl FnOnce() -> String) -> Result<(), Violation> {
    if held { Ok(()) } else { broken(invariant, text) }
}

/// Where a commit came from, and the store's time when it came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The node.
    pub node: usize,
    /// The time.
    pub at: Timestamp,
}

/// What the checker knows.
pub struct Checker {
    streams: BTreeMap<RecordId, Stream>,
    keys: BTreeMap<IdempotencyKey, (RecordId, Timestamp)>,
    acknowledged: BTreeMap<IdempotencyKey, Acknowledged>,
    effects: BTreeMap<Digest, Effect>,
    concluded: BTreeSet<OperationId>,
    retired: BTreeSet<RecordId>,
    /// Work that a service took under an intent and that no record knows of yet.
    unknown_outside: BTreeSet<RecordId>,
    /// Jobs of which whoever does the work was really sent a cancel.
    cancel_sent: BTreeSet<RecordId>,
    routing: Routing,
    /// Reports that were refused as stale, by job.
    refused: BTreeMap<RecordId, Refused>,
    last_position: u64,
    open: usize,
    produced: u64,
    facts: u64,
    digest: u64,
    retention: Retention,
    policy: KindPolicy,
    /// Operations must end in time from here on.
    pub(crate) calm_since: Option<Timestamp>,
}

/// The checker's own picture of one record.
#[derive(Default)]
struct Stream {
    version: u64,
    /// The version of its newest checkpoint; 0 if it has none.
    begins_at: u64,
    at: Timestamp,
    record: Option<Record>,
    claim: Option<Claim>,
    held: bool,
    place: Option<Place>,
    ready: bool,
    due_at: Option<Timestamp>,
    limit_at: Option<Timestamp>,
    /// If it is a job.
    life: Life,
    /// If it is an operation: how often it was polled.
    polls: u32,
}

impl Checker {
    /// A checker that has seen nothing.
    pub fn new(retention: Retention, policy: KindPolicy) -> Self {
        Self {
            streams: BTreeMap::new(),
            keys: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            effects: BTreeMap::new(),
            concluded: BTreeSet::new(),
            retired: BTreeSet::new(),
            unknown_outside: BTreeSet::new(),
            cancel_sent: BTreeSet::new(),
            routing: Routing::default(),
            refused: BTreeMap::new(),
            last_position: 0,
            open: 0,
            produced: 0,
            facts: 0,
            digest: 0xcbf2_9ce4_8422_2325,
            retention,
            policy,
            calm_since: None,
        }
    }

    /// Whoever does a job is sent a cancel.
    pub fn sends_cancel(&mut self, job: RecordId) {
        self.cancel_sent.insert(job);
    }

    /// Records that are not over.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Facts written so far.
    pub fn facts(&self) -> u64 {
        self.facts
    }

    /// A digest of all facts so far, with their times and places.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// A record, as the checker has folded it.
    pub fn record(&self, id: &RecordId) -> Option<&Record> {
        self.streams.get(id)?.record.as_ref()
    }

    /// All records, as the checker has folded them.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.streams.values().filter_map(|stream| stream.record.as_ref())
    }

    /// A commit reached the store and was answered so.
    pub fn committed(
        &mut self,
        tables: &Tables,
        commit: &Commit,
        answer: &Result<Committed, StoreError>,
        mut order: Option<&mut OrderTrace>,
        arrival: Arrival,
        counters: &mut Counters,
    ) -> Result<(), Violation> {
        let last_position = tables.facts.last_key_value().map_or(0, |(position, _)| *position);
        if answer.is_err() {
            must(last_position <= self.last_position, "P3", || {
                format!("a refused commit wrote facts: {answer:?}")
            })?;
            self.count_refused(commit, answer, counters);
            return commit.changes.iter().try_for_each(|change| self.is_untouched(tables, &change.id));
        }
        must(commit.at <= arrival.at.plus_micros(MAX_SKEW), "I11", || {
            format!("at {:?} a commit is from {:?}", arrival.at, commit.at)
        })?;
        let most = 1 + MAX_CONSEQUENCES + MAX_NOTIFIED;
        must(commit.changes.len() <= most, "bounded", || {
            format!("one commit changes {} records, more than {most}", commit.changes.len())
        })?;
        self.routing.begin(arrival.node, &commit.actor);
        for change in &commit.changes {
            self.check_fence(change)?;
            let written = self.changed(tables, commit, change, order.as_deref(), counters)?;
            if let (Some(first), Some(order)) = (written, order.as_deref_mut()) {
                self.one_effect(order, change, first, commit)?;
            }
        }
        self.routed(commit, counters)?;
        for key in &commit.keys {
            let (owner, _) =
                self.keys.entry(key.key.clone()).or_insert_with(|| (key.record.clone(), key.keep_until));
            must(*owner == key.record, "I5", || {
                format!("key {} made {owner} and then {}", key.key.key, key.record)
            })?;
        }
        // What went with its record was given a position too.
        if let (Ok(committed), true) =
            (answer, commit.changes.iter().any(|change| change.removal == Removal::Record))
        {
            self.last_position = self.last_position.max(committed.position);
        }
        Ok(())
    }

    /// One record of a commit that was said to be done; answers with the first fact that is new.
    fn changed(
        &mut self,
        tables: &Tables,
        commit: &Commit,
        change: &Change,
        order: Option<&OrderTrace>,
        counters: &mut Counters,
    ) -> Result<Option<FactId>, Violation> {
        let id = &change.id;
        self.unknown_outside.remove(id);
        if change.removal == Removal::Record {
            counters.saw(Sometimes::RecordRetired);
            return self.retired(tables, change, commit.at);
        }
        let version = self.streams.get(id).map_or(0, |stream| stream.version);
        let stored = tables.streams.get(id);
        let new = stored.into_iter().flat_map(|stream| stream.range(version + 1..));
        let new: Vec<&StoredFact> = new.map(|(_, position)| &tables.facts[position]).collect();
        if new.is_empty() {
            // Facts that are there already make a commit done, and so do those that have gone with a checkpoint since; facts that are nowhere
            // make the answer a lie.
            for (version, fact) in (change.expected.version + 1..).zip(&change.facts) {
                let found = stored.and_then(|stream| stream.get(&version));
                let there = found.is_some_and(|position| tables.facts[position].id == fact.id);
                must(there || version < whole::first_version(tables, id), "I0", || {
                    format!("a commit on {id} was acknowledged and is not in the ledger")
                })?;
            }
        } else {
            self.stale_changes_nothing(id, &new, order)?;
        }
        let unclaimed = change.fence.is_none() && new.iter().any(|new| jobs::says_lease_lost(&new.fact));
        must(!unclaimed, "I6", || format!("a lost lease of {id} was stated without a claim"))?;
        for fact in &new {
            self.fact(fact, commit.at, counters)?;
        }
        if let (Some(checkpoint), false) = (change.checkpoint_version(), new.is_empty()) {
            counters.saw(Sometimes::OlderFactsGone);
            let first = whole::first_version(tables, id);
            must(first == checkpoint, "checkpoint", || {
                format!("{id} has a checkpoint at version {checkpoint}, and begins at {first}")
            })?;
            if let Some(stream) = self.streams.get_mut(id) {
                stream.begins_at = checkpoint;
            }
        }
        self.view_and_agenda(tables, id, commit.at, !change.facts.is_empty() && new.is_empty())?;
        Ok(new.first().map(|fact| fact.id))
    }

    fn fact(&mut self, stored: &StoredFact, at: Timestamp, counters: &mut Counters) -> Result<(), Violation> {
        let id = &stored.stream;
        let mut stream = self.streams.remove(id).unwrap_or_default();
        must(stored.version == stream.version + 1, "I11", || {
            format!("{id} goes from version {} to {}", stream.version, stored.version)
        })?;
        must(stored.position > self.last_position, "I11", || {
            format!("position {} follows {}", stored.position, self.last_position)
        })?;
        must(stored.at >= stream.at && stored.at == at, "I11", || {
            format!("{id}: {} is at {:?}, after {:?}", fact_kind(&stored.fact), stored.at, stream.at)
        })?;
        let was_open = stream.record.as_ref().is_some_and(is_open);
        if let Some(fact) = stored.fact.as_job() {
            self.job_fact(id, &mut stream, fact, stored.at, counters)?;
            self.step_fact(id, &stream, fact);
        } else if let Some(fact) = stored.fact.as_operation() {
            self.operation_fact(id, &mut stream, fact, stored.at, counters)?;
        } else if let Some(fact) = stored.fact.as_event() {
            self.event_fact(id, &stream, fact, counters)?;
        } else if let Some(fact) = stored.fact.as_run() {
            self.run_fact(id, fact, stored.at, counters)?;
        }
        apply(&mut stream.record, id, &stored.fact, stored.at)
            .map_err(|misfold| Violation { invariant: "I1", text: format!("{id}: {misfold}") })?;
        stream.version = stored.version;
        stream.at = stored.at;
        let is_open = stream.record.as_ref().is_some_and(is_open);
        self.open = self.open + usize::from(is_open) - usize::from(was_open);
        self.last_position = stored.position;
        self.facts += 1;
        self.mix(stored);
        self.streams.insert(id.clone(), stream);
        Ok(())
    }

    /// A report of an attempt that is not current leaves nothing but evidence; so may one that comes after the end.
    fn stale_changes_nothing(
        &self,
        id: &RecordId,
        new: &[&StoredFact],
        order: Option<&OrderTrace>,
    ) -> Result<(), Violation> {
        let order = order.filter(|order| order.record == *id);
        let (Some(attempt), Some(stream)) =
            (order.and_then(|order| order.attempt.as_ref()), self.streams.get(id))
        else {
            return Ok(());
        };
        let current = stream.life.attempt.as_ref() == Some(attempt) && !stream.life.sent_back;
        let evidence = new.iter().all(|new| matches!(new.fact, Fact::Job(JobFact::StaleReportKept(_))));
        let fits = if evidence { !current || stream.life.is_over() } else { current };
        must(fits, "stale", || {
            let kinds: Vec<_> = new.iter().map(|new| fact_kind(&new.fact)).collect();
            format!("{attempt} is current: {current}, and {id} got {kinds:?}")
        })
    }

    /// One order, one effect: only the same commit may be written for it again.
    fn one_effect(
        &self,
        order: &mut OrderTrace,
        change: &Change,
        first: FactId,
        commit: &Commit,
    ) -> Result<(), Violation> {
        if order.record != change.id {
            return Ok(());
        }
        let twice = order.effect.is_some() && self.proof_is_left(order);
        must(!twice, "P3", || format!("one order on {} was carried out twice", order.record))?;
        order.effect = Some(first);
        let versions = commit.changes.iter().map(|change| (change.id.clone(), change.expected.version + 1));
        order.written = versions.collect();
        order.evidence_only = commit.changes.iter().all(is_evidence);
        Ok(())
    }

    /// Whether all that an order wrote was there ever since. A record that was retired took the proof with it, or a checkpoint did, and a
    /// repeat of the commit cannot be told from a new one.
    pub fn proof_is_left(&self, order: &OrderTrace) -> bool {
        let is_left = |(id, version): &(RecordId, u64)| {
            let begins_at = self.streams.get(id).map_or(0, |stream| stream.begins_at);
            !self.retired.contains(id) && *version >= begins_at
        };
        order.written.iter().all(is_left)
    }

    fn mix(&mut self, stored: &StoredFact) {
        let mut mix = |bytes: &[u8]| {
            for byte in bytes {
                self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        mix(&stored.position.to_le_bytes());
        mix(&stored.at.micros().to_le_bytes());
        mix(&stored.id.0);
        mix(fact_kind(&stored.fact).as_bytes());
    }
}

impl Stream {
    fn copy_row(&mut self, row: &store::AgendaRow) {
        self.claim.clone_from(&row.claim);
        self.held = row.held;
        self.place.clone_from(&row.place);
        self.ready = row.ready;
        self.due_at = row.due_at;
        self.limit_at = row.limit_at;
    }
}

/// Whether a record is not over.
pub fn is_open(record: &Record) -> bool {
    !record.is_over()
}

/// What a refused order may leave: a trace on its job, and what may still run outside, given up as it is written down.
fn is_evidence(change: &Change) -> bool {
    if change.id.as_job().is_some() {
        return change.facts.iter().all(|new| matches!(new.fact, Fact::Job(JobFact::StaleReportKept(_))));
    }
    let ends_at_once = change
        .facts
        .last()
        .is_some_and(|new| matches!(new.fact, Fact::Operation(OperationFact::Expired { .. })));
    change.expected.version == 0 && ends_at_once
}
