//! Clocks that step: one store, its holders of leases, its operations and its timetable, while the wall clock glitches, is set both ways, and
//! the machine is suspended. The rules are the product's own (`domain::timeline`, `domain::timers`, the store's, `Engine::attend`); only the
//! clocks are the seed's.
//!
//! What is checked after every tick: store time follows what has passed and what was adopted (T1), no lease of a live holder is taken (T2),
//! no operation ends before its life has passed (T3) nor long after it (T5), nothing that is due at a time of day begins before it (T4).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::attention::Retention;
use domain::job::{JobCommand, JobSpec, NewJob};
use domain::operation::{Cancelability, NewOperation, OperationCommand};
use domain::policy::{Hint, KindPolicy};
use domain::timeline::{Step, Steps, Timeline};
use domain::{
    AttemptId, BodyName, Fence, Jitter, JobId, Lease, OperationId, OwnerId, Record, RecordId, RecordKind,
    RetryPolicy, Timestamp,
};
use engine::{Clock, Engine, Ids, Order, move_timers};
use futures::FutureExt;
use store::{MemoryStore, Store, Take, body_ref};

use crate::invariants::{Violation, broken, must};
use crate::rng::Rng;

const SECOND: i64 = 1_000_000;
const EPOCH: i64 = 1_700_000_000 * SECOND;
const ADOPT_AFTER: i64 = 300 * SECOND;
const TICKS: usize = 300;
/// What store time may be off by: what is followed, and a tick.
const SLACK: i64 = 40 * SECOND;
/// The life that the host grants.
const LIFE_SECONDS: i64 = 900;
/// The shortest time between two heartbeats of a live holder, and the longest.
const TICK_SECONDS: (i64, i64) = (1, 15);

/// What a run has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteppingCounters {
    /// Steps that were adopted forward.
    pub adopted_forward: u64,
    /// Steps that were adopted back.
    pub adopted_back: u64,
    /// Glitches that went away before.
    pub glitches: u64,
    /// Suspends.
    pub suspends: u64,
    /// Leases that were live when store time jumped.
    pub leases_kept: u64,
    /// Renewals that had read the time before a jump and came after it.
    pub renewals_across: u64,
    /// Looks for something to take that had read the time before a step back and came after it.
    pub takes_across: u64,
    /// Operations that lived through a jump.
    pub lives_kept: u64,
    /// Operations that ended when their life was over.
    pub lives_ended: u64,
    /// Leases that ended because their holder had died.
    pub leases_ended: u64,
    /// Jobs that began at their time of day.
    pub timetable_kept: u64,
}

impl SteppingCounters {
    fn all(&mut self) -> [&mut u64; 11] {
        [
            &mut self.adopted_forward,
            &mut self.adopted_back,
            &mut self.glitches,
            &mut self.suspends,
            &mut self.leases_kept,
            &mut self.renewals_across,
            &mut self.takes_across,
            &mut self.lives_kept,
            &mut self.lives_ended,
            &mut self.leases_ended,
            &mut self.timetable_kept,
        ]
    }

    /// Adds what another run has seen.
    pub fn add(&mut self, mut other: Self) {
        for (sum, more) in self.all().into_iter().zip(other.all()) {
            *sum += *more;
        }
    }

    /// Whether nothing that this is about was left out.
    pub fn every_situation_occurred(mut self) -> bool {
        self.all().into_iter().all(|count| *count > 0)
    }
}

/// The clocks of the seed, and store time on them.
struct Clocks {
    boot: i64,
    off_by: i64,
    timeline: Timeline,
    steps: Steps,
}

struct SeedClock(Mutex<Clocks>);

struct SeedIds(Mutex<Rng>);

/// A holder of a lease.
struct Holder {
    fence: Fence,
    renewed_boot: i64,
    alive: bool,
}

/// The wall clock as the seed has it: off by so much, since when.
struct Truth {
    believed: i64,
    off_by: i64,
    since: i64,
    glitch_until: Option<i64>,
}

struct Scene {
    rng: Rng,
    clock: Arc<SeedClock>,
    store: Arc<MemoryStore>,
    engine: Engine,
    truth: Truth,
    holders: BTreeMap<RecordId, Holder>,
    /// Operations with the boot-time at which they were accepted.
    lives: BTreeMap<RecordId, i64>,
    /// Jobs that are due at a time of day.
    timetable: BTreeMap<RecordId, Timestamp>,
    named: u64,
    counters: SteppingCounters,
}

/// Runs one seed.
pub fn run_stepping(seed: u64) -> Result<SteppingCounters, Violation> {
    let mut scene = Scene::new(seed);
    for _ in 0..TICKS {
        scene.tick()?;
    }
    Ok(scene.counters)
}

impl Scene {
    fn new(seed: u64) -> Self {
        let timeline = Timeline::start(0, Timestamp::from_micros(EPOCH), Timestamp::default(), None);
        let clocks = Clocks { boot: 0, off_by: 0, timeline, steps: Steps::default() };
        let clock = Arc::new(SeedClock(Mutex::new(clocks)));
        let store = Arc::new(MemoryStore::new());
        let ids = Arc::new(SeedIds(Mutex::new(Rng::seeded(seed ^ 1))));
        let engine = Engine::new(store.clone(), clock.clone(), ids, Retention::DEFAULT);
        Self {
            rng: Rng::seeded(seed),
            clock,
            store,
            engine,
            truth: Truth { believed: 0, off_by: 0, since: 0, glitch_until: None },
            holders: BTreeMap::new(),
            lives: BTreeMap::new(),
            timetable: BTreeMap::new(),
            named: 0,
            counters: SteppingCounters::default(),
        }
    }

    fn tick(&mut self) -> Result<(), Violation> {
        let (low, high) = TICK_SECONDS;
        let passed = self.rng.within(low, high) * SECOND;
        self.pass(passed);
        self.disturb();
        self.look_at_the_clock()?;
        self.heartbeat()?;
        self.begin_something();
        self.attend()?;
        self.take_from_holders(self.clock.now())?;
        self.check_timetable()
    }

    fn pass(&mut self, micros: i64) {
        let mut clocks = self.clock.lock();
        clocks.boot += micros;
        self.store.tell_boot_clock(clocks.boot);
    }

    fn boot(&self) -> i64 {
        self.clock.lock().boot
    }

    /// What happens to the clocks.
    fn disturb(&mut self) {
        let boot = self.boot();
        if self.truth.glitch_until.is_some_and(|until| until <= boot) {
            self.truth.glitch_until = None;
            self.set_wall(self.truth.believed);
            self.counters.glitches += 1;
        }
        if self.truth.glitch_until.is_some() || self.truth.off_by != self.truth.believed {
            return;
        }
        match self.rng.below(40) {
            0 => {
                let by = self.draw_step();
                self.set_wall(self.truth.believed + by);
                self.truth.glitch_until = Some(boot + self.rng.within(2, 200) * SECOND);
            }
            1 => {
                let by = self.draw_step();
                self.set_wall(self.truth.believed + by);
            }
            2 => {
                // Nobody beats while the machine is suspended: that is time passing.
                let asleep = self.rng.within(60, 8 * 3_600) * SECOND;
                self.pass(asleep);
                self.counters.suspends += 1;
            }
            _ => {}
        }
    }

    fn draw_step(&mut self) -> i64 {
        let by = self.rng.within(120, 4 * 3_600) * SECOND;
        if self.rng.chance(500) { by } else { -by }
    }

    fn set_wall(&mut self, off_by: i64) {
        let mut clocks = self.clock.lock();
        clocks.off_by = off_by;
        (self.truth.off_by, self.truth.since) = (off_by, clocks.boot);
    }

    /// Adopts what has lasted, as whoever keeps the time does, and checks where store time stands (T1).
    fn look_at_the_clock(&mut self) -> Result<(), Violation> {
        let read_before = self.clock.now();
        let adopt = self.clock.lock().observe().adopt;
        if let Some(step) = adopt {
            self.adopt(step, read_before)?;
        }
        let (now, boot) = (self.clock.now(), self.boot());
        let lasted = boot - self.truth.since;
        if self.truth.off_by != self.truth.believed && lasted >= ADOPT_AFTER {
            self.truth.believed = self.truth.off_by;
        }
        let apart = now.micros() - (EPOCH + boot + self.truth.believed);
        must(apart.abs() <= SLACK, "T1", || {
            format!("store time is {} s from what passed and was adopted", apart / SECOND)
        })
    }

    fn adopt(&mut self, step: Step, read_before: Timestamp) -> Result<(), Violation> {
        let anchor = self.clock.lock().timeline.anchor(1);
        at_once(self.store.keep_clock(anchor, Some(step.into())));
        if step.by_micros() < 0 {
            // Another worker had read the time already.
            self.take_from_holders(read_before)?;
            self.counters.takes_across += 1;
        }
        self.clock.adopt(step);
        if step.by_micros() > 0 {
            self.counters.adopted_forward += 1;
        } else {
            self.counters.adopted_back += 1;
        }
        let boot = self.boot();
        for (id, holder) in self.holders.iter_mut().filter(|(_, holder)| holder.alive) {
            self.counters.leases_kept += 1;
            // Some had read the time already.
            if self.rng.chance(300) {
                let renewed = self.store.renew(id, holder.fence.clone(), read_before, Lease::DEFAULT);
                let renewed = at_once(renewed);
                (holder.fence, holder.renewed_boot) = (renewed.claim.fence(), boot);
                self.counters.renewals_across += 1;
            }
        }
        self.counters.lives_kept += self.lives.len() as u64;
        let moved = move_timers(&self.engine, &step.into()).now_or_never();
        must(matches!(moved, Some(Ok(()))), "T1", || format!("timers were not moved: {moved:?}"))?;
        // Before anybody beats again: whoever is quick finds nothing to take.
        self.attend()?;
        self.take_from_holders(self.clock.now())
    }

    /// Who lives renews; after a suspend some have lost what they held, which is right.
    fn heartbeat(&mut self) -> Result<(), Violation> {
        let (now, boot) = (self.clock.now(), self.boot());
        let mut lost = Vec::new();
        for (id, holder) in &mut self.holders {
            if self.rng.chance(10) {
                holder.alive = false;
            }
            if !holder.alive {
                continue;
            }
            let renewed = self.store.renew(id, holder.fence.clone(), now, Lease::DEFAULT).now_or_never();
            match renewed {
                Some(Ok(taken)) => (holder.fence, holder.renewed_boot) = (taken.claim.fence(), boot),
                _ if boot - holder.renewed_boot >= lease_micros() - SLACK => lost.push(id.clone()),
                other => return broken("T2", || format!("{id} was lost by a live holder: {other:?}")),
            }
        }
        for id in &lost {
            self.holders.remove(id);
        }
        Ok(())
    }

    fn begin_something(&mut self) {
        self.named += 1;
        let (now, name) = (self.clock.now(), self.named);
        match self.rng.below(8) {
            0 if self.holders.len() < 20 => {
                let id = RecordId::Job(JobId::new(format!("work-held-{name}")));
                self.create(&id, None);
                let owner = OwnerId::outside(&format!("holder-{name}"));
                let taken = at_once(self.store.take(&id, Take::by(owner, now, Lease::DEFAULT, 1)));
                let holder = Holder { fence: taken.claim.fence(), renewed_boot: self.boot(), alive: true };
                self.holders.insert(id, holder);
            }
            1 => {
                let id = RecordId::Operation(OperationId::new(format!("op-{name}")));
                let new = Box::new(new_operation(name));
                self.execute(&id, OperationCommand::Accept(new).into());
                self.lives.insert(id, self.boot());
            }
            2 => {
                let id = RecordId::Job(JobId::new(format!("work-timetable-{name}")));
                let due_at = now.plus_micros(self.rng.within(600, 86_400) * SECOND);
                self.create(&id, Some(due_at));
                self.timetable.insert(id, due_at);
            }
            _ => {}
        }
    }

    fn create(&self, id: &RecordId, due_at: Option<Timestamp>) {
        let spec = JobSpec::plain(None, RetryPolicy::ONCE);
        let new = NewJob { spec, due_at, bodies: Vec::new() };
        self.execute(id, JobCommand::Create(Box::new(new)).into());
    }

    fn execute(&self, id: &RecordId, command: domain::Command) {
        let order = Order::new(id.clone(), command, Arc::from("stepping"));
        let done = self.engine.execute(order).now_or_never().expect("the model answers at once");
        done.expect("it is allowed");
    }

    /// What is due is attended to, as the workers do; what ends is judged by the time that passed (T3, T5).
    fn attend(&mut self) -> Result<(), Violation> {
        let (now, boot) = (self.clock.now(), self.boot());
        for kind in [RecordKind::Job, RecordKind::Operation] {
            let take = Take::by(OwnerId::new("worker-1"), now, Lease::DEFAULT, 1_000);
            for taken in at_once(self.store.take_due(kind, take)) {
                self.lease_was_over(&taken.id)?;
                let attended = self.engine.attend(&taken, Arc::from("stepping")).now_or_never();
                must(matches!(attended, Some(Ok(_))), "T3", || format!("{}: {attended:?}", taken.id))?;
            }
        }
        let mut ended = Vec::new();
        for (id, accepted) in &self.lives {
            let lived = boot - accepted;
            let over = at_once(self.store.load(id)).is_none_or(|loaded| is_ended(&loaded.record));
            let life = LIFE_SECONDS * SECOND;
            must(!over || lived >= life - SLACK, "T3", || format!("{id} ended after {} s", lived / SECOND))?;
            must(over || lived <= life + SLACK, "T5", || format!("{id} lives for {} s", lived / SECOND))?;
            if over {
                ended.push(id.clone());
            }
        }
        self.counters.lives_ended += ended.len() as u64;
        for id in &ended {
            self.lives.remove(id);
        }
        Ok(())
    }

    /// Whoever takes what is held takes it from the dead (T2).
    fn take_from_holders(&mut self, now: Timestamp) -> Result<(), Violation> {
        let ids: Vec<RecordId> = self.holders.keys().cloned().collect();
        for id in ids {
            let take = Take::by(OwnerId::outside("rival"), now, Lease::DEFAULT, 1);
            if let Some(Ok(_)) = self.store.take(&id, take).now_or_never() {
                self.lease_was_over(&id)?;
            }
        }
        Ok(())
    }

    fn lease_was_over(&mut self, id: &RecordId) -> Result<(), Violation> {
        let boot = self.boot();
        let Some(holder) = self.holders.remove(id) else { return Ok(()) };
        let since = boot - holder.renewed_boot;
        self.counters.leases_ended += 1;
        must(since >= lease_micros() - SLACK, "T2", || {
            format!("{id} was taken {} s after it was renewed", since / SECOND)
        })
    }

    /// What is due at a time of day begins then, and not before (T4).
    fn check_timetable(&mut self) -> Result<(), Violation> {
        let right = EPOCH + self.boot() + self.truth.believed;
        let begun = |id: &RecordId| {
            self.store.inspect(|tables| tables.agenda.get(id).is_none_or(|row| row.ready || row.held))
        };
        let begun: Vec<RecordId> = self.timetable.keys().filter(|id| begun(id)).cloned().collect();
        for id in begun {
            let due_at = self.timetable.remove(&id).expect("it is listed");
            must(due_at.micros() <= right + SLACK, "T4", || {
                format!("{id} began {} s before its time", (due_at.micros() - right) / SECOND)
            })?;
            self.counters.timetable_kept += 1;
        }
        Ok(())
    }
}

impl SeedClock {
    fn adopt(&self, step: Step) {
        let mut clocks = self.lock();
        clocks.timeline.adopt(step);
        clocks.steps.push(step);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Clocks> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

impl Clocks {
    fn observe(&mut self) -> domain::timeline::Reading {
        let wall = Timestamp::from_micros(EPOCH + self.boot + self.off_by);
        self.timeline.observe(self.boot, wall)
    }
}

impl Clock for SeedClock {
    fn now(&self) -> Timestamp {
        self.lock().observe().now
    }

    fn steps(&self) -> Steps {
        self.lock().steps.clone()
    }
}

impl Ids for SeedIds {
    fn next(&self) -> u128 {
        let mut rng = self.0.lock().expect("no holder of the lock panics");
        (u128::from(rng.bits()) << 64) | u128::from(rng.bits())
    }
}

fn lease_micros() -> i64 {
    Lease::DEFAULT.expires_at(Timestamp::default()).micros()
}

fn is_ended(record: &Record) -> bool {
    matches!(record, Record::Operation(operation) if operation.ended.is_some())
}

fn new_operation(name: u64) -> NewOperation {
    let policy = KindPolicy {
        max_ttl_seconds: u64::try_from(LIFE_SECONDS).unwrap_or_default(),
        ..KindPolicy::default()
    };
    NewOperation {
        job_id: JobId::new(format!("work-of-{name}")),
        attempt_id: AttemptId::new(format!("attempt-{name}")),
        kind: "press".to_owned(),
        specialist: "press".to_owned(),
        circle: None,
        handle: Some(body_ref(BodyName::Handle, b"press-1")),
        cancelability: Cancelability::NotCancelable("the model has no service".to_owned()),
        retry_after: Hint::Absent,
        fail_after: Hint::Absent,
        action_ttl: Hint::Absent,
        deadline_at: None,
        progress_hint: None,
        policy,
        jitter: Jitter(0),
        ttl_limit: None,
        external_job_id: None,
    }
}

/// The model answers before it returns, and what is asked here is always allowed.
fn at_once<T>(reply: store::Reply<'_, T>) -> T {
    let answer = reply.now_or_never().expect("the model answers at once");
    answer.unwrap_or_else(|error| panic!("the model refused: {error}"))
}
