//! One seed from its first event to its verdict.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use crate::api::handle;
use crate::counters::{Counters, Sometimes, Struck};
use crate::faults::{Fault, Faults, Weather};
use crate::heap::{Event, SECOND};
use crate::invariants::{Violation, broken};
use crate::node::Node;
use crate::slab::{Key, Slab};
use crate::world::{Polled, Sim, Work, World};
use crate::{client, peer, routed, stale};

/// Steps between two looks at the whole state.
const WHOLE_EVERY: u64 = 1_000;
/// How often a run looks whether it is over.
const LOOK_EVERY: i64 = 5 * SECOND;
/// The least time that a run goes on after the calm.
const CALM_AT_LEAST: i64 = 30 * SECOND;
/// The most steps of one run: a run beyond it does not end.
const MAX_STEPS: u64 = 2_000_000;

/// What a run that held has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Events.
    pub steps: u64,
    /// Facts written.
    pub facts: u64,
    /// Microseconds of simulated time.
    pub simulated: i64,
    /// What happened.
    pub counters: Counters,
    /// A digest of all facts with their times and places.
    pub digest: u64,
}

/// A run that broke an invariant.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed to run again.
    pub seed: u64,
    /// Events until then.
    pub steps: u64,
    /// What broke.
    pub violation: Violation,
    /// The last events, if they were kept.
    pub story: Vec<String>,
}

/// Whether the last events of a run are kept, which costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Story {
    /// They are not.
    Untold,
    /// They are.
    Told,
}

/// Runs one seed.
pub fn run(seed: u64, story: Story) -> Result<Report, Box<Failure>> {
    run_in(Weather::Mixed, seed, story)
}

/// Runs one seed in this weather.
pub fn run_in(weather: Weather, seed: u64, story: Story) -> Result<Report, Box<Failure>> {
    let mut run = Run::new(weather, seed, story);
    match run.until_over() {
        Ok(()) => Ok(run.report()),
        Err(violation) => {
            let story = run.sim.with(|world| world.story());
            Err(Box::new(Failure { seed, steps: run.steps, violation, story }))
        }
    }
}

struct Run {
    sim: Sim,
    tasks: Slab<Task>,
    nodes: Vec<Option<Node>>,
    steps: u64,
    over: bool,
}

struct Task {
    node: Option<usize>,
    work: Option<Work>,
    order: Option<Key>,
    waker: Option<Arc<TaskWaker>>,
}

/// Wakes a task by an event of its own, so that whoever wakes it is done first.
struct TaskWaker {
    sim: Sim,
    task: Key,
    /// Whether the event is on its way.
    woken: AtomicBool,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.woken.swap(true, Ordering::Relaxed) {
            self.sim.at_end(|world| world.heap.after(0, Event::Poll(self.task)));
        }
    }
}

impl Run {
    fn new(weather: Weather, seed: u64, story: Story) -> Self {
        let sim = Sim::new(seed, weather, story == Story::Told);
        let nodes = sim.with(|world| {
            let nodes = world.nodes.len();
            for node in 0..nodes {
                let after = world.rng.within(0, SECOND);
                world.heap.after(after, Event::Fault(Fault::Start(node)));
            }
            for fault in [Fault::Crash, Fault::Pause, Fault::Cut, Fault::Clock, Fault::Damage] {
                world.schedule(fault);
            }
            world.heap.at(world.setting.calm_at, Event::Fault(Fault::Calm));
            nodes
        });
        client::start(&sim);
        stale::start(&sim);
        routed::start(&sim);
        peer::start(&sim);
        Self { sim, tasks: Slab::default(), nodes: vec![None; nodes], steps: 0, over: false }
    }

    fn until_over(&mut self) -> Result<(), Violation> {
        self.start_spawned();
        while !self.over {
            let Some(event) = self.sim.with(|world| world.heap.pop()) else { break };
            self.steps += 1;
            self.step(event)?;
            self.start_spawned();
            if let Some(violation) = self.sim.with(|world| world.failure.take()) {
                return Err(violation);
            }
            if self.steps.is_multiple_of(WHOLE_EVERY) {
                self.check_whole()?;
            }
            if self.steps > MAX_STEPS {
                return broken("liveness", || "the run does not end".to_owned());
            }
        }
        self.sim.with(|world| world.check.all_known().and_then(|()| world.check.all_counted()))?;
        self.check_whole()
    }

    fn step(&mut self, event: Event) -> Result<(), Violation> {
        let woken = match event {
            Event::Arrive(call) => {
                self.sim.with(|world| world.arrive(call));
                None
            }
            Event::Answer(call) => self.sim.with(|world| world.answer(call)),
            Event::GiveUp(call) => self.sim.with(|world| world.give_up(call)),
            Event::Wake(slot) => self.sim.with(|world| world.wake(slot)),
            Event::Poll(task) => self.wake(task),
            Event::Deliver(message) => {
                self.deliver(message);
                None
            }
            Event::Fault(fault) => {
                self.strike(fault);
                None
            }
            Event::Look => {
                self.look()?;
                None
            }
        };
        let to_wake = self.sim.with(|world| std::mem::take(&mut world.to_wake));
        if let Some(task) = woken {
            self.wake_within(task, to_wake);
            self.poll(task);
        }
        Ok(())
    }

    /// A task that another one woke goes on, unless its node stands still.
    fn wake(&mut self, key: Key) -> Option<Key> {
        let task = self.tasks.get_mut(key)?;
        let until = task.node.map_or(0, |node| self.sim.with(|world| world.nodes[node].paused_until));
        if self.sim.with(|world| until > world.heap.now()) {
            self.sim.with(|world| world.heap.at(until, Event::Poll(key)));
            return None;
        }
        if let Some(waker) = &task.waker {
            waker.woken.store(false, Ordering::Relaxed);
        }
        Some(key)
    }

    /// Wakes whoever waits inside a task that is polled now; the task itself needs no waking.
    fn wake_within(&mut self, task: Key, to_wake: Vec<Waker>) {
        let own = self.tasks.get_mut(task).and_then(|task| task.waker.clone()).map(Waker::from);
        for waker in to_wake {
            if !own.as_ref().is_some_and(|own| own.will_wake(&waker)) {
                waker.wake();
            }
        }
    }

    fn poll(&mut self, key: Key) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        let Some(mut work) = task.work.take() else { return };
        let polled = Polled { task: key, node: task.node, order: task.order };
        let waker = task.waker.get_or_insert_with(|| {
            Arc::new(TaskWaker { sim: self.sim.clone(), task: key, woken: AtomicBool::new(false) })
        });
        let waker = Waker::from(waker.clone());
        self.sim.with(|world| world.polled = Some(polled));
        let done = work.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let polled = self.sim.with(|world| world.polled.take());
        if done {
            self.tasks.remove(key);
        } else if let Some(task) = self.tasks.get_mut(key) {
            task.work = Some(work);
            task.order = polled.and_then(|polled| polled.order);
        }
    }

    fn start_spawned(&mut self) {
        loop {
            let spawned = self.sim.with(|world| std::mem::take(&mut world.spawned));
            if spawned.is_empty() {
                return;
            }
            for (node, work) in spawned {
                let key = self.tasks.insert(Task { node, work: Some(work), order: None, waker: None });
                self.poll(key);
            }
        }
    }

    fn deliver(&mut self, key: Key) {
        let sim = self.sim.clone();
        let Some((to, until)) = sim.with(|world| {
            let to = world.messages.get_mut(key)?.to;
            Some((to, world.nodes[to].paused_until))
        }) else {
            return;
        };
        if sim.with(|world| until > world.heap.now()) {
            sim.with(|world| world.heap.at(until, Event::Deliver(key)));
            return;
        }
        let message = sim.with(|world| world.messages.remove(key)).expect("it was there above");
        let Some(node) = self.nodes[to].clone() else { return };
        if message.is_copy {
            sim.with(|world| world.counters.saw(Sometimes::DuplicateClientMessage));
        }
        sim.spawn(Some(to), async move {
            let say = handle(&node, message.ask).await;
            if let Some(slot) = message.reply {
                node.sim.with(|world| world.reply(slot, say));
            }
        });
    }

    fn strike(&mut self, fault: Fault) {
        self.sim.with(|world| world.tell(|_| format!("{fault:?}")));
        let calm = self.sim.with(|world| world.is_calm());
        match fault {
            Fault::Start(node) => self.start(node),
            Fault::Calm => self.calm(),
            Fault::GoOn(node) => self.sim.with(|world| world.go_on(node)),
            Fault::Crash | Fault::CrashOf(_) | Fault::Pause | Fault::Cut | Fault::Clock | Fault::Damage
                if calm => {}
            Fault::Crash => {
                let node = self.sim.with(|world| world.rng.index(world.nodes.len()));
                self.crash(node);
            }
            Fault::CrashOf(node) => self.crash(node),
            Fault::Pause => self.sim.with(World::pause),
            Fault::Cut => self.sim.with(World::cut),
            Fault::Clock => self.sim.with(World::jump),
            Fault::Damage => self.sim.with(World::damage),
        }
        self.sim.with(|world| world.schedule(fault));
    }

    fn start(&mut self, node: usize) {
        if self.nodes[node].is_some() {
            return;
        }
        self.nodes[node] = Some(Node::boot(&self.sim, node));
        self.sim.with(|world| {
            if world.rng.chance(world.faults.crash_in_recovery) {
                let after = world.rng.within(0, 2 * SECOND);
                world.heap.after(after, Event::Fault(Fault::CrashOf(node)));
            }
        });
    }

    fn crash(&mut self, node: usize) {
        let Some(gone) = self.nodes[node].take() else { return };
        self.sim.with(|world| {
            world.counters.struck(Struck::Crash);
            if world.check.holds_unrouted(&gone.owner) {
                world.counters.saw(Sometimes::CrashBetweenTakeAndSettle);
            }
            world.owners.remove(&gone.owner);
            let state = &mut world.nodes[node];
            state.up = false;
            state.paused_until = 0;
            if std::mem::take(&mut state.recovering) {
                world.counters.saw(Sometimes::CrashInRecovery);
            }
            world.drop_calls(node);
            let after = world.rng.within(SECOND / 10, 60 * SECOND);
            world.heap.after(after, Event::Fault(Fault::Start(node)));
        });
        let dead: Vec<Key> =
            self.tasks.iter_mut().filter(|(_, task)| task.node == Some(node)).map(|(key, _)| key).collect();
        for key in dead {
            // Dropped outside the lock: what the task held takes the lock to let go.
            drop(self.tasks.remove(key));
        }
        self.sim.with(|world| world.nodes[node].running = 0);
    }

    fn calm(&mut self) {
        let down: Vec<usize> = (0..self.nodes.len()).filter(|node| self.nodes[*node].is_none()).collect();
        self.sim.with(|world| {
            world.faults = Faults::none();
            world.calm_since = Some(world.heap.now());
            // Whoever stands still goes on at its time, which is near; until then nothing is done in time on that node.
            let paused =
                world.nodes.iter().map(|node| node.paused_until - world.heap.now()).max().unwrap_or(0);
            let settled = paused.max(world.setting.lease_micros + crate::faults::MAX_SLOW);
            world.check.calm_since = Some(world.store_time().plus_micros(settled));
            for node in &mut world.nodes {
                node.cut_until = 0;
            }
            world.heap.after(LOOK_EVERY, Event::Look);
        });
        for node in down {
            self.start(node);
        }
    }

    /// Ends the run when everything is over, or when it should have been.
    fn look(&mut self) -> Result<(), Violation> {
        let (over, late) = self.sim.with(|world| {
            let since = world.heap.now() - world.calm_since.unwrap_or(world.heap.now());
            let over = world.check.open() == 0 && world.busy_clients == 0 && since >= CALM_AT_LEAST;
            (over, since > world.setting.horizon())
        });
        self.over = over;
        self.sim.with(|world| {
            let now = world.store_time();
            world.store.inspect(|tables| world.check.nothing_overdue(tables, now))
        })?;
        if late && !over {
            self.sim.with(|world| world.store.inspect(|tables| world.check.all_over(tables)))?;
            return broken("liveness", || "a client is still without an answer".to_owned());
        }
        self.sim.with(|world| world.heap.after(LOOK_EVERY, Event::Look));
        Ok(())
    }

    fn check_whole(&self) -> Result<(), Violation> {
        self.sim.with(|world| world.store.inspect(|tables| world.check.whole(tables)))
    }

    fn report(&self) -> Report {
        self.sim.with(|world| Report {
            steps: self.steps,
            facts: world.check.facts(),
            simulated: world.heap.now(),
            counters: world.counters,
            digest: world.check.digest(),
        })
    }
}
