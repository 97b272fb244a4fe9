//! Nodes that share a store, whose clocks and the server's are set: what each does about the step that it sees is the product's own rule
//! (`engine::verdict`); the clocks and the heartbeats are the seed's.
//!
//! What is checked: no node corrects the clock for all by a step that most nodes do not see (V1), and when no clock is set any more all
//! agree in time (V2).

use domain::Timestamp;
use domain::timeline::FOLLOWED_MICROS;
use engine::verdict::{Verdict, Watch, verdict};
use store::Sight;

use crate::heap::SECOND;
use crate::invariants::{Violation, must};
use crate::rng::Rng;

/// From one heartbeat to the next.
const BEAT: i64 = 10 * SECOND;
/// Heartbeats while clocks are set, and those until all must agree.
const BEATS: (usize, usize) = (120, 90);
const ADOPT_AFTER_SECONDS: u64 = 300;

/// What a run has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgreeingCounters {
    /// Steps of the server's clock that were corrected for all.
    pub corrected: u64,
    /// Nodes whose own clock was the odd one, and that followed the store.
    pub followed: u64,
    /// Steps that were adopted because no two agreed.
    pub adopted: u64,
}

impl AgreeingCounters {
    /// Adds what another run has seen.
    pub fn add(&mut self, other: Self) {
        self.corrected += other.corrected;
        self.followed += other.followed;
        self.adopted += other.adopted;
    }

    /// Whether nothing that this is about was left out.
    pub fn every_situation_occurred(self) -> bool {
        [self.corrected, self.followed, self.adopted].into_iter().all(|count| count > 0)
    }
}

struct Node {
    id: String,
    /// How far its own clock is off.
    off_by: i64,
    watch: Watch,
    /// The step that it has said it sees, and since when.
    sees: Option<(i64, i64)>,
    heartbeat_at: Timestamp,
}

struct Scene {
    rng: Rng,
    now: i64,
    /// How far the server's clock is off, corrected.
    server: i64,
    nodes: Vec<Node>,
    counters: AgreeingCounters,
}

/// Runs one seed; what it has seen.
pub fn run_agreeing(seed: u64) -> Result<AgreeingCounters, Violation> {
    let mut rng = Rng::seeded(seed);
    let nodes = (0..rng.within(2, 7)).map(|number| Node {
        id: format!("node-{number}"),
        off_by: 0,
        watch: Watch::default(),
        sees: None,
        heartbeat_at: Timestamp::default(),
    });
    let (nodes, counters) = (nodes.collect(), AgreeingCounters::default());
    let mut scene = Scene { now: 0, server: 0, nodes, rng, counters };
    let (set, quiet) = BEATS;
    for beat in 0..set + quiet {
        if beat < set {
            scene.set_clocks();
        }
        scene.beat()?;
    }
    let apart = scene.nodes.iter().find(|node| scene.step_of(node).is_some());
    must(apart.is_none(), "V2", || {
        format!(
            "{:?} still sees a step of {:?}",
            apart.map(|node| &node.id),
            apart.map(|node| scene.step_of(node))
        )
    })?;
    Ok(scene.counters)
}

impl Scene {
    fn set_clocks(&mut self) {
        let by = self.rng.pick(&[-1, 1]) * self.rng.within(10, 7_200) * SECOND;
        match self.rng.below(20) {
            0 => self.server += by,
            1 => {
                let odd = self.rng.index(self.nodes.len());
                self.nodes[odd].off_by += by;
            }
            _ => {}
        }
    }

    /// The step of the server's clock that a node sees.
    fn step_of(&self, node: &Node) -> Option<i64> {
        let step = self.server - node.off_by;
        (step.abs() > FOLLOWED_MICROS).then_some(step)
    }

    /// One heartbeat of each node, and what it does about the time.
    fn beat(&mut self) -> Result<(), Violation> {
        self.now += BEAT;
        for number in 0..self.nodes.len() {
            self.nodes[number].heartbeat_at = Timestamp::from_micros(self.now);
            let Some(step) = self.step_of(&self.nodes[number]) else {
                self.nodes[number].agree();
                continue;
            };
            let verdict = self.verdict(number, step);
            match verdict {
                Verdict::Wait => {}
                Verdict::Correct => {
                    self.most_see(step)?;
                    self.counters.corrected += 1;
                    self.server -= step;
                    self.nodes[number].agree();
                }
                Verdict::Follow => {
                    self.counters.followed += 1;
                    self.nodes[number].off_by += step;
                    self.nodes[number].agree();
                }
                Verdict::Adopt => {
                    self.counters.adopted += 1;
                    self.nodes.iter_mut().for_each(|node| node.off_by += step);
                    self.nodes[number].agree();
                }
            }
        }
        Ok(())
    }

    fn verdict(&mut self, number: usize, step: i64) -> Verdict {
        let now = self.now;
        let node = &mut self.nodes[number];
        let since = match node.sees {
            Some((seen, since)) if is_same(seen, step) => since,
            Some(_) | None => now,
        };
        node.sees = Some((step, since));
        let said = |node: &Node| Sight {
            node_id: node.id.clone(),
            heartbeat_at: node.heartbeat_at,
            by_micros: node.sees.map(|(seen, _)| seen),
        };
        let sights: Vec<Sight> = self.nodes.iter().map(said).collect();
        let node = &mut self.nodes[number];
        let others = node.watch.look(&node.id, &sights, now);
        let lasted = u64::try_from((now - since) / SECOND).unwrap_or_default();
        verdict(step, lasted, ADOPT_AFTER_SECONDS, &others)
    }

    /// Counted anew here, from what all nodes have said.
    fn most_see(&self, step: i64) -> Result<(), Violation> {
        let see = self.nodes.iter().filter(|node| node.sees.is_some_and(|(seen, _)| is_same(seen, step)));
        let (see, all) = (see.count(), self.nodes.len());
        must(2 * see > all, "V1", || {
            format!("{see} of {all} nodes see a step of {} s, and it is corrected for all", step / SECOND)
        })
    }
}

impl Node {
    fn agree(&mut self) {
        self.sees = None;
        self.watch.forget();
    }
}

fn is_same(seen: i64, step: i64) -> bool {
    (seen - step).abs() <= FOLLOWED_MICROS
}
