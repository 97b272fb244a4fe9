//! The clock of a machine that has its store for itself: the boot-time clock, compared with the wall clock.

use std::sync::Mutex;

use domain::Timestamp;
use domain::timeline::{Anchor, Reading, Step, Steps, Timeline};
use futures::future::BoxFuture;
use store::StoreClock;
use tokio::sync::watch;

use super::{Clock, ClockStatus, Timer, announce, boot_clock, boot_id, sleep_until, wall_clock};
use crate::locked::Locked;

/// The clock of this machine, on the timeline of its store.
pub struct SystemClock {
    state: Mutex<State>,
    boot_id: i64,
    adopt_after_seconds: u64,
    /// Counts the jumps.
    jumps: watch::Sender<u64>,
}

struct State {
    timeline: Timeline,
    steps: Steps,
}

impl SystemClock {
    /// Starts no earlier than this: the newest fact of the store. Nothing else is known of it.
    pub fn starting_at(earliest: Timestamp) -> Self {
        Self::on(StoreClock::default(), earliest, domain::timeline::ADOPT_AFTER_SECONDS)
    }

    /// Goes on where the store's time stands, and adopts a step that has lasted so long.
    pub fn on(store: StoreClock, newest_fact: Timestamp, adopt_after_seconds: u64) -> Self {
        let boot_id = boot_id();
        let anchor = store.anchor.filter(|anchor| anchor.boot == boot_id && boot_id != 0);
        let timeline = Timeline::start(boot_clock(), wall_clock(), newest_fact, anchor);
        let state = State { timeline: timeline.adopting_after(adopt_after_seconds), steps: store.steps };
        Self { state: Mutex::new(state), boot_id, adopt_after_seconds, jumps: watch::Sender::new(0) }
    }

    /// The step that has lasted long enough, if one has.
    pub fn step_to_adopt(&self) -> Option<Step> {
        self.read(|reading, _| reading.adopt)
    }

    /// The step that makes store time what the wall clock says, if they disagree.
    pub fn step_to_wall(&self) -> Option<Step> {
        self.read(|_, state| state.timeline.step_to_wall())
    }

    /// What whoever is started again must know, as it is after a step.
    pub fn anchor_after(&self, step: Option<Step>) -> Anchor {
        self.read(|_, state| {
            let mut timeline = state.timeline.clone();
            if let Some(step) = step {
                timeline.adopt(step);
            }
            timeline.anchor(self.boot_id)
        })
    }

    /// Jumps by a step that the store has kept. Whoever waits looks again.
    pub fn adopt(&self, step: Step) {
        self.read(|_, state| {
            state.timeline.adopt(step);
            state.steps.push(step);
        });
        self.jumps.send_modify(|jumps| *jumps += 1);
    }

    fn read<T>(&self, look: impl FnOnce(Reading, &mut State) -> T) -> T {
        let mut state = self.state.locked();
        let (boot, wall) = both_clocks();
        let reading = state.timeline.observe(boot, wall);
        if let Some(news) = reading.news {
            announce("wall clock", news);
        }
        look(reading, &mut state)
    }
}

/// Looks that are made until both clocks were read at one moment.
const LOOKS: usize = 5;
/// What counts as one moment.
const ONE_MOMENT_MICROS: i64 = 1_000_000;

/// Both clocks at one moment: a process that is held up between the two looks would take that for a step.
fn both_clocks() -> (i64, Timestamp) {
    let mut read = (boot_clock(), wall_clock());
    for _ in 0..LOOKS {
        let after = boot_clock();
        if after.saturating_sub(read.0) < ONE_MOMENT_MICROS {
            break;
        }
        read = (after, wall_clock());
    }
    read
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.read(|reading, _| reading.now)
    }

    fn steps(&self) -> Steps {
        self.state.locked().steps.clone()
    }

    fn status(&self) -> ClockStatus {
        self.read(|reading, state| {
            let departure = state.timeline.departure();
            ClockStatus {
                store_time: reading.now,
                wall_time: reading.now.plus_micros(departure.map_or(0, |departure| departure.by_micros)),
                since: departure.map(|departure| departure.since),
                adopted_by_itself: !state.timeline.is_ahead_at_start(),
                adopt_after_seconds: self.adopt_after_seconds,
                steps: state.steps.as_slice().len() as u64,
                steps_seen: state.timeline.departures(),
            }
        })
    }
}

impl Timer for SystemClock {
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(sleep_until(self, self.jumps.subscribe(), at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_starts_no_earlier_than_the_newest_fact() {
        let far = wall_clock().plus_seconds(3_600);
        let clock = SystemClock::starting_at(far);
        assert!(clock.now() >= far);
        assert!(!clock.status().adopted_by_itself);
        assert!((-3_601..=-3_599).contains(&clock.status().step_seconds()));
    }

    #[test]
    fn the_system_clock_never_goes_back() {
        let clock = SystemClock::starting_at(wall_clock().plus_seconds(3_600));
        let readings: Vec<_> = (0..1_000).map(|_| clock.now()).collect();
        assert!(readings.is_sorted());
    }

    #[test]
    fn started_again_in_one_boot_the_clock_goes_on_by_its_anchor() {
        let first = SystemClock::starting_at(wall_clock().plus_seconds(3_600));
        let anchor = Some(first.anchor_after(None));
        let started = |anchor| {
            SystemClock::on(StoreClock { anchor, ..StoreClock::default() }, Timestamp::default(), 300)
        };
        let again = started(anchor);
        let apart = again.now().micros() - first.now().micros();
        assert!(apart.abs() < 1_000_000, "{apart}");
        let other_boot = anchor.map(|anchor| Anchor { boot: anchor.boot ^ 1, ..anchor });
        // The two clocks are read one after the other.
        assert!(started(other_boot).now() <= wall_clock().plus_seconds(1));
    }

    #[tokio::test]
    async fn whoever_sleeps_looks_again_when_the_clock_is_set_back() {
        let clock = SystemClock::starting_at(wall_clock().plus_seconds(3_600));
        let sleeps = clock.sleep_until(clock.now().plus_seconds(60));
        let set_back = async {
            tokio::task::yield_now().await;
            clock.adopt(clock.step_to_wall().expect("it is ahead"));
        };
        tokio::join!(sleeps, set_back);
        assert!(clock.now() <= wall_clock().plus_seconds(1));
        assert_eq!(clock.status().step_seconds(), 0);
    }
}
