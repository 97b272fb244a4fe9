//! The world: everything that the tasks of a run share, behind one lock. A task holds it only between two awaits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use domain::{Digest, OperationId, OwnerId, RecordId, Timestamp};
use store::{MemoryStore, StoreError};

use crate::api::Say;
use crate::connector::Connector;
use crate::counters::Counters;
use crate::faults::{Faults, MAX_SKEW, Weather};
use crate::heap::{Event, Heap, SECOND};
use crate::invariants::{Checker, Violation};
use crate::messages::Message;
use crate::orders::OrderTrace;
use crate::rng::Rng;
use crate::setting::{Setting, WhoseWorkers};
use crate::slab::{Key, Slab};
use crate::wire::{Answer, Call};

/// The store's time at the start of a run, in microseconds since 1970.
const EPOCH: i64 = 1_800_000_000 * SECOND;
/// Events kept for the story of a failure.
const KEPT_EVENTS: usize = 40;

/// What a task does.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The handle on the world that every task holds.
#[derive(Clone)]
pub struct Sim(Arc<Mutex<World>>);

/// Everything that tasks share.
pub struct World {
    pub(crate) heap: Heap,
    pub(crate) rng: Rng,
    /// Chance for what only some seeds have: it takes nothing from the chance of all others.
    pub(crate) rare: Rng,
    pub(crate) setting: Setting,
    pub(crate) faults: Faults,
    pub(crate) counters: Counters,
    pub(crate) store: MemoryStore,
    pub(crate) check: Checker,
    pub(crate) nodes: Vec<NodeState>,
    /// Owners whose process lives.
    pub(crate) owners: BTreeSet<OwnerId>,
    pub(crate) connectors: BTreeMap<OperationId, Connector>,
    /// When the faults ended, if they have.
    pub(crate) calm_since: Option<i64>,
    /// Clients that still have something to do.
    pub(crate) busy_clients: usize,
    pub(crate) failure: Option<Violation>,
    pub(crate) spawned: Vec<(Option<usize>, Work)>,
    pub(crate) slots: Slab<Slot>,
    pub(crate) calls: Slab<Call>,
    pub(crate) messages: Slab<Message>,
    pub(crate) orders: Slab<OrderTrace>,
    /// The task that is polled.
    /// Whoever waited for what has just come.
    pub(crate) to_wake: Vec<Waker>,
    pub(crate) polled: Option<Polled>,
    /// How far the store's time has jumped.
    pub(crate) jumped: i64,
    /// Bodies that were damaged.
    pub(crate) damaged: BTreeSet<(RecordId, Digest)>,
    /// Requests under way about operations that hung last time, by node.
    pub(crate) hung_under_way: BTreeMap<usize, usize>,
    ids: u64,
    story: Option<VecDeque<String>>,
}

/// A node, as the world sees it.
pub struct NodeState {
    /// Whether its process lives.
    pub up: bool,
    /// How often it was started.
    pub boots: u32,
    /// Whether it still recovers from its last end.
    pub recovering: bool,
    /// It stands still until then.
    pub paused_until: i64,
    /// It is cut off from the store until then.
    pub cut_until: i64,
    /// How far its clock is from the store's time.
    pub skew: i64,
    /// Its clock's last answer.
    pub last_now: i64,
    /// Jobs that it runs.
    pub running: usize,
}

/// Something that a task waits for.
pub struct Slot {
    task: Key,
    node: Option<usize>,
    pub(crate) said: Option<Say>,
    filled: Option<Filled>,
    /// Who waits within its task: futures that are polled together are woken one by one.
    waker: Option<Waker>,
}

/// What came.
#[allow(clippy::large_enum_variant, reason = "few live at once, and boxed they could not be matched")]
pub enum Filled {
    /// The time.
    Time,
    /// A node's answer to a message.
    Said(Say),
    /// The store's answer to a call.
    Answer(Result<Answer, StoreError>),
}

/// The task that is polled, the node that it lives on, and the order that it has under way.
#[derive(Clone, Copy)]
pub struct Polled {
    pub(crate) task: Key,
    pub(crate) node: Option<usize>,
    pub(crate) order: Option<Key>,
}

impl Sim {
    /// A world before its first event.
    pub fn new(seed: u64, weather: Weather, keep_story: bool) -> Self {
        let mut rng = Rng::seeded(seed);
        let mut setting = Setting::draw(&mut rng);
        setting.draw_checkpoints(&mut Rng::seeded(!seed ^ 1));
        let mut faults = Faults::draw(&mut rng, weather);
        let mut rare = Rng::seeded(!seed);
        if setting.workers == WhoseWorkers::Engine {
            faults.draw_rare(&mut rare, weather, &setting);
        }
        let check = Checker::new(setting.retention, setting.policy());
        Self(Arc::new(Mutex::new(World {
            heap: Heap::default(),
            rng,
            rare,
            faults,
            counters: Counters::default(),
            store: MemoryStore::new(),
            check,
            nodes: (0..setting.nodes).map(|_| NodeState::down()).collect(),
            setting,
            owners: BTreeSet::new(),
            connectors: BTreeMap::new(),
            calm_since: None,
            busy_clients: 0,
            failure: None,
            spawned: Vec::new(),
            slots: Slab::default(),
            calls: Slab::default(),
            messages: Slab::default(),
            orders: Slab::default(),
            to_wake: Vec::new(),
            polled: None,
            jumped: 0,
            damaged: BTreeSet::new(),
            hung_under_way: BTreeMap::new(),
            ids: 0,
            story: keep_story.then(VecDeque::new),
        })))
    }

    /// Looks at the world or changes it.
    pub fn with<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut self.0.lock().expect("a run ends with its first panic"))
    }

    /// The same at the end of something; a run that has panicked is left as it is.
    pub fn at_end(&self, act: impl FnOnce(&mut World)) {
        if let Ok(mut world) = self.0.lock() {
            act(&mut world);
        }
    }

    /// Waits that many microseconds.
    pub async fn sleep(&self, micros: i64) {
        let slot = self.with(|world| {
            let slot = world.open_slot();
            world.heap.after(micros, Event::Wake(slot));
            slot
        });
        self.wait(slot).await;
    }

    /// Waits some time within these bounds.
    pub async fn doze(&self, low: i64, high: i64) {
        let micros = self.with(|world| world.rng.within(low, high));
        self.sleep(micros).await;
    }

    /// Waits for whatever fills the slot first.
    pub fn wait(&self, slot: Key) -> Wait<'_> {
        Wait { sim: self, slot }
    }

    /// Starts a task, on a node or outside.
    pub fn spawn(&self, node: Option<usize>, work: impl Future<Output = ()> + Send + 'static) {
        self.with(|world| world.spawned.push((node, Box::pin(work))));
    }
}

/// A wait for a slot. Dropping it makes whatever comes later fall on nothing.
pub struct Wait<'a> {
    sim: &'a Sim,
    slot: Key,
}

impl Future for Wait<'_> {
    type Output = Filled;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Filled> {
        self.sim.with(|world| {
            let Some(slot) = world.slots.get_mut(self.slot) else { return Poll::Pending };
            if let Some(filled) = slot.filled.take() {
                return Poll::Ready(filled);
            }
            if !slot.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                slot.waker = Some(context.waker().clone());
            }
            Poll::Pending
        })
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.sim.at_end(|world| drop(world.slots.remove(self.slot)));
    }
}

impl NodeState {
    fn down() -> Self {
        Self {
            up: false,
            boots: 0,
            recovering: false,
            paused_until: 0,
            cut_until: 0,
            skew: 0,
            last_now: 0,
            running: 0,
        }
    }
}

impl World {
    /// The store's time.
    pub fn store_time(&self) -> Timestamp {
        Timestamp::from_micros(EPOCH + self.jumped + self.heap.now())
    }

    /// The time as a node's clock tells it: near the store's, and never earlier than its last answer.
    pub fn node_time(&mut self, node: usize) -> Timestamp {
        let store_time = self.store_time().micros();
        let node = &mut self.nodes[node];
        debug_assert!(node.skew.abs() <= MAX_SKEW);
        node.last_now = node.last_now.max(store_time + node.skew);
        Timestamp::from_micros(node.last_now)
    }

    /// 128 bits that rise with time, were never given before, and end in chance.
    pub fn next_id(&mut self) -> u128 {
        self.ids += 1;
        let millis = u128::try_from(self.store_time().micros() / 1_000).expect("time is after 1970");
        millis << 80 | u128::from(self.ids) << 32 | u128::from(self.rng.bits() >> 32)
    }

    /// Whether faults have ended.
    pub fn is_calm(&self) -> bool {
        self.calm_since.is_some()
    }

    /// A slot for the task that is polled.
    pub fn open_slot(&mut self) -> Key {
        let polled = self.polled.expect("only a polled task waits");
        self.slots.insert(Slot {
            task: polled.task,
            node: polled.node,
            said: None,
            filled: None,
            waker: None,
        })
    }

    /// Fills a slot that is still waited for; answers with the task to poll.
    pub fn fill(&mut self, slot: Key, filled: Filled) -> Option<Key> {
        let slot = self.slots.get_mut(slot)?;
        slot.filled = Some(match (filled, slot.said.take()) {
            (Filled::Time, Some(say)) => Filled::Said(say),
            (filled, _) => filled,
        });
        self.to_wake.extend(slot.waker.take());
        Some(slot.task)
    }

    /// When the node that waits for this slot goes on, if it stands still now.
    pub fn paused_until(&mut self, slot: Key) -> Option<i64> {
        let node = self.slots.get_mut(slot)?.node?;
        let until = self.nodes[node].paused_until;
        (until > self.heap.now()).then_some(until)
    }

    /// A wait is over, unless its node stands still.
    pub(crate) fn wake(&mut self, slot: Key) -> Option<Key> {
        if let Some(until) = self.paused_until(slot) {
            self.heap.at(until, Event::Wake(slot));
            return None;
        }
        self.fill(slot, Filled::Time)
    }

    /// Keeps the first broken invariant.
    pub fn require(&mut self, held: Result<(), Violation>) {
        if let Err(violation) = held
            && self.failure.is_none()
        {
            self.failure = Some(violation);
        }
    }

    /// Adds a line to the story, if someone will read it.
    pub fn tell(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.story.is_none() {
            return;
        }
        let now = self.heap.now();
        let line = format!("{:5}.{:06} s  {}", now / SECOND, now % SECOND, line(self));
        if let Some(story) = &mut self.story {
            if story.len() == KEPT_EVENTS {
                story.pop_front();
            }
            story.push_back(line);
        }
    }

    /// The last events.
    pub fn story(&self) -> Vec<String> {
        self.story.iter().flatten().cloned().collect()
    }
}
