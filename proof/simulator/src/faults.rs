//! What goes wrong in a run: each seed draws its own rates, and about half of the seeds switch whole classes off.

use domain::{BodyName, Record};

use crate::counters::{Sometimes, Struck};
use crate::heap::{Event, SECOND};
use crate::rng::Rng;
use crate::setting::Setting;
use crate::world::World;

/// How far a node's corrected clock may be from the store's time, either way.
pub const MAX_SKEW: i64 = SECOND / 2;
/// The longest that a slow call takes one way: longer than the shortest lease.
pub const MAX_SLOW: i64 = 75 * SECOND;

/// What mostly goes wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// A little of everything.
    Mixed,
    /// A little of everything, and nodes with work in their hands stand still past their leases again and again.
    Pauses,
    /// A little of everything, and services that leave most polls without an answer.
    Hangs,
}

/// Which nodes stand still, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pausing {
    /// Any node, for up to three leases.
    Anyone,
    /// One that has work, and others beside it to take it over: for more than a lease.
    WhoeverHasWork,
}

/// The rates of one run: parts of a thousand, and mean microseconds between strikes.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Store calls refused before they have an effect.
    pub refused: u32,
    /// Store calls that have their effect and whose answer is lost.
    pub answer_lost: u32,
    /// Store calls that are slow, up to longer than a lease.
    pub slow: u32,
    /// Commits told of a conflict that is none.
    pub conflict: u32,
    /// Calls told that the store is busy.
    pub busy: u32,
    /// Nodes die.
    pub crash_every: Option<i64>,
    /// Nodes die again while they recover.
    pub crash_in_recovery: u32,
    /// Nodes stand still for up to three leases, and go on with old beliefs.
    pub pause_every: Option<i64>,
    /// Which of them.
    pub pausing: Pausing,
    /// Nodes are cut off from the store.
    pub cut_every: Option<i64>,
    /// Clocks jump: a node's within the skew, the store's forward by up to an hour.
    pub clock_every: Option<i64>,
    /// Operations whose connector misbehaves.
    pub connector: u32,
    /// Attempts whose executor misbehaves.
    pub executor: u32,
    /// Messages that come twice or late.
    pub message: u32,
    /// Services that do not answer a poll.
    pub hangs: u32,
    /// Stored bodies are damaged.
    pub damage_every: Option<i64>,
}

/// A fault that strikes at a time; the number is the node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A node dies.
    Crash,
    /// This node dies, whatever it does.
    CrashOf(usize),
    /// This node starts again.
    Start(usize),
    /// A node stands still.
    Pause,
    /// This node, which stood still past its leases with work in its hands, goes on.
    GoOn(usize),
    /// A node is cut off from the store.
    Cut,
    /// A clock jumps.
    Clock,
    /// A stored body is damaged.
    Damage,
    /// Everything goes right from now on.
    Calm,
}

impl Faults {
    /// Nothing goes wrong.
    pub fn none() -> Self {
        Self {
            refused: 0,
            answer_lost: 0,
            slow: 0,
            conflict: 0,
            busy: 0,
            crash_every: None,
            crash_in_recovery: 0,
            pause_every: None,
            pausing: Pausing::Anyone,
            cut_every: None,
            clock_every: None,
            connector: 0,
            executor: 0,
            message: 0,
            hangs: 0,
            damage_every: None,
        }
    }

    /// What goes wrong in some seeds only, and only with the engine's own workers: they alone have slots for polls and read all bodies.
    pub fn draw_rare(&mut self, rare: &mut Rng, weather: Weather, setting: &Setting) {
        let (hangs, damages) = (rare.chance(300) || weather == Weather::Hangs, rare.chance(300));
        self.hangs = if hangs { 800 } else { 0 };
        // A damaged handle is read again every second, in a slot: where the store takes seconds for it, the others come late.
        let is_quick = setting.latency < SECOND;
        self.damage_every = (damages && !hangs && is_quick).then(|| rare.within(10, 60) * SECOND);
    }

    /// The faults of one seed in this weather.
    pub fn draw(rng: &mut Rng, weather: Weather) -> Self {
        let mixed = Self::draw_mixed(rng);
        match weather {
            Weather::Mixed | Weather::Hangs => mixed,
            Weather::Pauses => {
                let pause_every = Some(rng.within(6, 15) * SECOND);
                Self { pause_every, pausing: Pausing::WhoeverHasWork, ..mixed }
            }
        }
    }

    fn draw_mixed(rng: &mut Rng) -> Self {
        let swarm = rng.chance(500);
        let rate = |rng: &mut Rng, most: u32| {
            let off = swarm && rng.chance(500);
            let drawn = rng.count(most / 8, most);
            if off { 0 } else { drawn }
        };
        let (refused, answer_lost, slow) = (rate(rng, 80), rate(rng, 80), rate(rng, 40));
        let (conflict, busy) = (rate(rng, 200), rate(rng, 100));
        let crash_in_recovery = rate(rng, 300);
        let (connector, executor, message) = (rate(rng, 300), rate(rng, 300), rate(rng, 200));
        let every = |rng: &mut Rng, low: i64, high: i64| {
            let off = swarm && rng.chance(500);
            let drawn = rng.within(low, high) * SECOND;
            (!off).then_some(drawn)
        };
        Self {
            refused,
            answer_lost,
            slow,
            conflict,
            busy,
            crash_every: every(rng, 20, 400),
            crash_in_recovery,
            pause_every: every(rng, 15, 300),
            pausing: Pausing::Anyone,
            cut_every: every(rng, 15, 300),
            clock_every: every(rng, 30, 300),
            connector,
            executor,
            message,
            hangs: 0,
            damage_every: None,
        }
    }

    /// When a fault of this kind strikes next, in microseconds from now, if it does at all.
    pub fn next(&self, fault: Fault, rng: &mut Rng) -> Option<i64> {
        let every = match fault {
            Fault::Crash => self.crash_every,
            Fault::Pause => self.pause_every,
            Fault::Cut => self.cut_every,
            Fault::Clock => self.clock_every,
            Fault::Damage => self.damage_every,
            Fault::CrashOf(_) | Fault::Start(_) | Fault::GoOn(_) | Fault::Calm => None,
        }?;
        Some(rng.within(every / 4, every + every / 2))
    }
}

impl World {
    /// Pushes the next fault of this kind.
    pub(crate) fn schedule(&mut self, fault: Fault) {
        if let Some(after) = self.faults.next(fault, &mut self.rng) {
            self.heap.after(after, Event::Fault(fault));
        }
    }

    /// Some node stands still, and will go on with old beliefs.
    pub(crate) fn pause(&mut self) {
        let lease = self.setting.lease_micros;
        let (node, shortest) = match self.faults.pausing {
            Pausing::Anyone => (self.rng.index(self.nodes.len()), 0),
            Pausing::WhoeverHasWork => {
                let busy = self.busy_nodes();
                if busy.is_empty() || self.setting.is_in_process() {
                    return;
                }
                (self.rng.pick(&busy), lease + 1)
            }
        };
        let length = self.rng.within(shortest, 3 * lease);
        self.counters.struck(Struck::Pause);
        let until = self.heap.now() + length;
        self.nodes[node].paused_until = until;
        if length > lease && self.nodes[node].running > 0 {
            self.heap.at(until, Event::Fault(Fault::GoOn(node)));
        }
    }

    /// The nodes that have work and do not stand still.
    fn busy_nodes(&self) -> Vec<usize> {
        let now = self.heap.now();
        let busy =
            self.nodes.iter().enumerate().filter(|(_, node)| node.running > 0 && node.paused_until <= now);
        busy.map(|(number, _)| number).collect()
    }

    /// A node goes on that stood still past its leases, unless it died meanwhile or was paused anew.
    pub(crate) fn go_on(&mut self, node: usize) {
        if self.nodes[node].paused_until == self.heap.now() {
            self.counters.saw(Sometimes::ResumedAfterLease);
        }
    }

    /// Some node is cut off from the store.
    pub(crate) fn cut(&mut self) {
        let node = self.rng.index(self.nodes.len());
        let length = self.rng.within(0, 90 * SECOND);
        self.counters.struck(Struck::Partition);
        self.nodes[node].cut_until = self.heap.now() + length;
    }

    /// A node's clock jumps within the skew, back or forth; now and then the store's own jumps ahead.
    pub(crate) fn jump(&mut self) {
        self.counters.struck(Struck::ClockJump);
        if self.rng.chance(150) {
            self.jumped += self.rng.within(0, 3_600 * SECOND);
            return;
        }
        let node = self.rng.index(self.nodes.len());
        self.nodes[node].skew = self.rng.within(-MAX_SKEW, MAX_SKEW);
    }

    /// The bytes of a body that will be read again are not what they were.
    pub(crate) fn damage(&mut self) {
        let handle = |record: &Record| record.as_operation().filter(|open| open.ended.is_none())?.handle;
        let input = |record: &Record| {
            let job = record.as_job().filter(|job| !job.state.name().is_terminal())?;
            job.bodies.iter().find(|body| body.name == BodyName::Input).copied()
        };
        let open = self.check.records().filter_map(|record| {
            let body = handle(record).or_else(|| input(record))?;
            Some((record.id(), body))
        });
        let whole: Vec<_> =
            open.filter(|(id, body)| !self.damaged.contains(&(id.clone(), body.sha256))).collect();
        if !whole.is_empty() {
            let (id, body) = whole[self.rare.index(whole.len())].clone();
            self.counters.struck(Struck::Damage);
            self.store.damage_body(&id, body);
            self.damaged.insert((id, body.sha256));
        }
    }
}
