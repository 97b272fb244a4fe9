//! What really happened: faults that fired, answers that were lost, how long it took; and whether that is enough to prove anything.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::oracle::Tally;
use crate::plan::Scene;

/// A run of thirty minutes has at least so many of each; shorter ones in proportion.
const MEASURE_SECONDS: u64 = 1_800;
const KILLS: u64 = 500;
const AMBIGUOUS: u64 = 100;
const ACCEPTED: u64 = 5_000;
const TAKEN_OVER: u64 = 100;
const PAUSES: u64 = 20;
const BACKUPS: u64 = 15;
/// In so many seconds there is time for a backup, whatever the store.
const TIME_FOR_A_BACKUP_SECONDS: u64 = 30;
const AT_NAMED_POINTS: u64 = 50;

/// What happened, and when.
#[derive(Debug)]
pub struct Figures {
    began: Instant,
    /// Second and name of each fault.
    pub faults: Vec<(f64, &'static str)>,
    /// Second of each kill, and milliseconds until the node answered again.
    pub recoveries: Vec<(f64, u64)>,
    /// Second, and jobs accepted and over by then.
    pub progress: Vec<(f64, u64, u64)>,
    pub rounds: u64,
    pub full_looks: u64,
    pub kills: u64,
    pub kills_in_start: u64,
    pub terminations: u64,
    pub pauses: u64,
    pub lost_nodes: u64,
    pub sessions_ended: u64,
    pub service_kills: u64,
    /// How often a node ended itself at each named point, and how often it did not come there in time.
    pub failpoints: BTreeMap<&'static str, u64>,
    pub failpoints_missed: u64,
    /// How long each backup took that held all that it must.
    pub backups: Vec<Duration>,
    /// How long it took until everything was over.
    pub calm: Duration,
}

impl Figures {
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            faults: Vec::new(),
            recoveries: Vec::new(),
            progress: Vec::new(),
            rounds: 0,
            full_looks: 0,
            kills: 0,
            kills_in_start: 0,
            terminations: 0,
            pauses: 0,
            lost_nodes: 0,
            sessions_ended: 0,
            service_kills: 0,
            failpoints: BTreeMap::new(),
            failpoints_missed: 0,
            backups: Vec::new(),
            calm: Duration::ZERO,
        }
    }

    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    pub fn whole_seconds(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    pub fn fault(&mut self, name: &'static str) {
        self.faults.push((self.seconds(), name));
    }

    /// A node answers again after so long.
    pub fn recovered(&mut self, after: Duration) {
        self.recoveries.push((self.seconds(), u64::try_from(after.as_millis()).unwrap_or(u64::MAX)));
    }

    /// All processes that were ended without a word.
    pub fn all_kills(&self) -> u64 {
        self.kills + self.kills_in_start + self.at_named_points() + self.lost_nodes
    }

    /// How often a node ended itself at a named point.
    pub fn at_named_points(&self) -> u64 {
        self.failpoints.values().sum()
    }

    /// The time below which this share of the recoveries lies, in milliseconds.
    pub fn recovery(&self, percent: usize) -> u64 {
        let mut times: Vec<u64> = self.recoveries.iter().map(|(_, time)| *time).collect();
        times.sort_unstable();
        let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(place).copied().unwrap_or_default()
    }
}

/// One thing of which there must be enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Threshold {
    /// What is counted.
    pub name: &'static str,
    /// How many there were.
    pub found: u64,
    /// How many there must be.
    pub needed: u64,
}

impl Threshold {
    /// Whether there were enough.
    pub fn is_met(&self) -> bool {
        self.found >= self.needed
    }
}

/// What a run of so many seconds needs to prove anything.
pub fn thresholds(
    seconds: u64,
    scene: Scene,
    figures: &Figures,
    tally: &Tally,
    accepted: u64,
    taken_over: u64,
) -> Vec<Threshold> {
    let share = |of: u64| (of * seconds / MEASURE_SECONDS).max(1);
    let mut all = vec![
        Threshold { name: "kills", found: figures.all_kills(), needed: share(KILLS) },
        Threshold { name: "ambiguous commits", found: tally.ambiguous, needed: share(AMBIGUOUS) },
        Threshold { name: "jobs accepted", found: accepted, needed: share(ACCEPTED) },
        Threshold { name: "attempts taken over", found: taken_over, needed: share(TAKEN_OVER) },
    ];
    let needed = if seconds < TIME_FOR_A_BACKUP_SECONDS { 0 } else { share(BACKUPS) };
    all.push(Threshold { name: "backups restored", found: figures.backups.len() as u64, needed });
    // A pause past a lease takes half a minute: too short a run has none.
    if scene.nodes > 1 {
        let needed = PAUSES * seconds / MEASURE_SECONDS;
        all.push(Threshold { name: "pauses past a lease", found: figures.pauses, needed });
    }
    if scene.failpoints {
        let needed = share(AT_NAMED_POINTS);
        all.push(Threshold { name: "kills at named points", found: figures.at_named_points(), needed });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_hour_needs_five_hundred_kills_and_a_moment_needs_one() {
        let scene = Scene { nodes: 3, shared: true, failpoints: true, service: true };
        let needed = |seconds| thresholds(seconds, scene, &Figures::new(), &Tally::default(), 0, 0);
        let names = |seconds| needed(seconds).iter().map(|one| one.needed).collect::<Vec<_>>();
        assert_eq!(names(1_800), [500, 100, 5_000, 100, 15, 20, 50]);
        assert_eq!(names(60), [16, 3, 166, 3, 1, 0, 1]);
        assert_eq!(names(5), [1, 1, 13, 1, 0, 0, 1]);
        assert!(needed(5).iter().take(4).all(|one| !one.is_met()));
    }

    #[test]
    fn recovery_is_the_share_that_was_asked_for() {
        let mut figures = Figures::new();
        for millis in 1..=100 {
            figures.recovered(Duration::from_millis(millis));
        }
        assert_eq!((figures.recovery(50), figures.recovery(99), Figures::new().recovery(50)), (51, 100, 0));
    }
}
