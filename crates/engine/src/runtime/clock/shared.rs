//! The clock of a store that several nodes share: this machine's boot-time clock, compared with the clock of the store.
//!
//! The store's clock is measured with every question that is asked of it, with the correction that all nodes have agreed on: what is
//! measured is store time, and the same for all. A difference that is small is followed. A large one is a step of the server's clock, or of
//! this machine's: this node goes on by its boot-time clock, and its membership finds out which of the two it is (`membership/agreement.rs`).

use std::sync::Mutex;
use std::time::Duration;

use domain::Timestamp;
use domain::timeline::{Anchor, Departure, FOLLOWED_MICROS, Step, Steps, Timeline};
use futures::future::BoxFuture;
use store::{Adopted, StoreClock};
use tokio::sync::watch;

use super::{Clock, ClockStatus, Timer, announce, boot_clock, boot_id, sleep_until};
use crate::locked::Locked;

/// The clock of a store that several nodes share.
pub struct SharedClock {
    measurements: Box<dyn Fn() -> Measured + Send + Sync>,
    boot_clock: BootClock,
    state: Mutex<State>,
    adopt_after_seconds: u64,
    /// Counts the jumps.
    jumps: watch::Sender<u64>,
}

/// The boot-time clock of a machine.
pub struct BootClock {
    /// Names the boot; zero if that is not known.
    pub boot: i64,
    /// Microseconds since the machine was started, suspends included.
    pub now: Box<dyn Fn() -> i64 + Send + Sync>,
}

/// What a store's clock said, and when that was by this machine's boot-time clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// What it said, with the correction: store time.
    pub at: Timestamp,
    /// When that was, in microseconds.
    pub heard_at_boot: i64,
    /// It may be off by this much to either side.
    pub uncertainty: Duration,
    /// The correction that all nodes have agreed on, in microseconds: store time minus what the server's clock says.
    pub correction_micros: i64,
    /// Rises with every change of the correction, and with every step that is adopted.
    pub revision: i64,
}

struct State {
    timeline: Timeline,
    /// The newest measurement that can be relied on.
    measured: Measured,
    steps: Steps,
    /// What the steps and the correction are known as of.
    revision: i64,
    /// Since when the correction is in force.
    corrected_since: Option<Timestamp>,
    /// Whether it stays until an operator says otherwise.
    ahead_at_start: bool,
    /// The step over which timers must still be moved as far as is known, and how often.
    unmoved: Option<(Adopted, u8)>,
}

/// A measurement that may be off by more is none.
const MOST_UNCERTAINTY: Duration = Duration::from_secs(2);

impl SharedClock {
    /// Goes by what `measurements` has measured last, and by what the store knows of its time. Starts no earlier than the newest fact, and
    /// where this machine's clock says that the store's time stands, if a node has kept that since the machine was started.
    pub fn new(
        earliest: Timestamp,
        known: StoreClock,
        adopt_after_seconds: u64,
        measurements: impl Fn() -> Measured + Send + Sync + 'static,
    ) -> Self {
        Self::by(
            BootClock { boot: boot_id(), now: Box::new(boot_clock) },
            earliest,
            known,
            adopt_after_seconds,
            measurements,
        )
    }

    /// The same, by another boot-time clock: for tests.
    pub fn by(
        boot_clock: BootClock,
        earliest: Timestamp,
        known: StoreClock,
        adopt_after_seconds: u64,
        measurements: impl Fn() -> Measured + Send + Sync + 'static,
    ) -> Self {
        let measured = measurements();
        let boot = (boot_clock.now)();
        let anchor = known.anchor_of(boot_clock.boot);
        let unmoved = known.unmoved().map(|adopted| (adopted, known.passes_left));
        let timeline = Timeline::start(boot, measured.carried_to(boot), earliest, anchor);
        let timeline = timeline.adopting_after(u64::MAX);
        let state = State {
            timeline,
            measured,
            steps: known.steps,
            revision: known.revision,
            corrected_since: known.corrected_since,
            ahead_at_start: known.ahead_at_start,
            unmoved,
        };
        let (measurements, jumps) = (Box::new(measurements), watch::Sender::new(0));
        Self { measurements, boot_clock, state: Mutex::new(state), adopt_after_seconds, jumps }
    }

    /// How long ago the store's clock was last measured.
    pub fn measured_ago(&self) -> Duration {
        let mut state = self.state.locked();
        self.measure(&mut state);
        let passed = self.boot().saturating_sub(state.measured.heard_at_boot);
        Duration::from_micros(u64::try_from(passed).unwrap_or_default())
    }

    /// Whether the store has a newer word on its time than this clock.
    pub fn is_behind(&self) -> bool {
        let newest = (self.measurements)();
        newest.revision != self.revision()
    }

    /// What this clock knows of the store's time is as of this revision.
    pub fn revision(&self) -> i64 {
        self.state.locked().revision
    }

    /// Takes over what the store knows of its time: the correction in force, and the steps that were adopted.
    ///
    /// A step is for whoever does not agree with the store's time. This clock may: it was started after the server's clock had stepped, or
    /// has followed it. Then it is where it has to be.
    pub fn learn(&self, known: StoreClock) {
        let boot = self.boot();
        let newest = (self.measurements)();
        let mut state = self.state.locked();
        let unknown = known.steps.as_slice().iter().filter(|step| !state.steps.as_slice().contains(step));
        let unknown: Vec<Step> = unknown.copied().collect();
        let by_micros: i64 = unknown.iter().map(|step| step.by_micros()).sum();
        let corrected_by = known.correction_micros.saturating_sub(state.measured.correction_micros);
        state.measured = if newest.revision == known.revision && newest.uncertainty <= MOST_UNCERTAINTY {
            newest
        } else {
            // What was measured before holds with the new correction as well.
            Measured {
                at: state.measured.at.plus_micros(corrected_by),
                correction_micros: known.correction_micros,
                revision: known.revision,
                ..state.measured
            }
        };
        let off_by = state.timeline.off_by(boot, state.measured.carried_to(boot));
        let agrees = |off_by: i64| off_by.saturating_abs() <= FOLLOWED_MICROS;
        if !agrees(off_by) || agrees(off_by.saturating_sub(by_micros)) {
            for step in unknown {
                state.timeline.adopt(step);
            }
        }
        state.timeline.expect_agreement();
        state.unmoved = known.unmoved().map(|adopted| (adopted, known.passes_left));
        state.steps = known.steps;
        state.revision = known.revision;
        state.corrected_since = known.corrected_since;
        state.ahead_at_start = known.ahead_at_start;
        drop(state);
        self.jumps.send_modify(|jumps| *jumps += 1);
    }

    /// The step over which timers must still be moved as far as is known, and how often.
    pub(crate) fn unmoved(&self) -> Option<(Adopted, u8)> {
        self.state.locked().unmoved.clone()
    }

    /// What the store knows of that now.
    pub(crate) fn hear_of_unmoved(&self, unmoved: Option<(Adopted, u8)>) {
        self.state.locked().unmoved = unmoved;
    }

    /// The boot-time clock that it goes by.
    pub(crate) fn boot(&self) -> i64 {
        (self.boot_clock.now)()
    }

    /// What whoever is started again on this machine must know, and as of which revision; none while this clock and the store's disagree.
    pub(crate) fn anchor(&self) -> Option<(Anchor, i64)> {
        self.now_at(self.boot());
        let state = self.state.locked();
        let agrees = state.timeline.departure().is_none();
        let boot = self.boot_clock.boot;
        (agrees && boot != 0).then(|| (state.timeline.anchor(boot), state.revision))
    }

    /// How the store's clock disagrees with this machine's, if it does: the correction does not account for it.
    pub fn departure(&self) -> Option<Departure> {
        self.now_at(self.boot());
        self.state.locked().timeline.departure()
    }

    /// This machine's clock was the odd one: goes on with the others. The jump that it makes, if it makes one.
    pub fn follow_the_store(&self) -> Option<Step> {
        let mut state = self.state.locked();
        let step = state.timeline.step_to_wall();
        if let Some(step) = step {
            tracing::warn!(
                seconds = step.by_micros() / 1_000_000,
                "this machine's clock is not that of most nodes: it follows the store's"
            );
            state.timeline.adopt(step);
        }
        drop(state);
        self.jumps.send_modify(|jumps| *jumps += 1);
        step
    }

    /// How long a step has to last.
    pub const fn adopt_after_seconds(&self) -> u64 {
        self.adopt_after_seconds
    }

    /// The correction in force as it was last measured, and since when.
    pub fn correction(&self) -> (i64, Option<Timestamp>) {
        let state = self.state.locked();
        (state.measured.correction_micros, state.corrected_since)
    }

    /// Whether the correction stays until an operator says otherwise.
    pub fn waits_for_operator(&self) -> bool {
        self.state.locked().ahead_at_start
    }

    fn measure(&self, state: &mut State) {
        let newest = (self.measurements)();
        // What was measured after a jump that this clock has not heard of waits until it has.
        if newest.uncertainty <= MOST_UNCERTAINTY && newest.revision == state.revision {
            state.measured = newest;
        }
    }

    fn now_at(&self, boot: i64) -> Timestamp {
        let mut state = self.state.locked();
        self.measure(&mut state);
        let estimate = state.measured.carried_to(boot);
        let reading = state.timeline.observe(boot, estimate);
        if let Some(news) = reading.news {
            announce("clock of the store", news);
        }
        reading.now
    }
}

impl Measured {
    /// The store's time at a later moment.
    fn carried_to(&self, boot: i64) -> Timestamp {
        self.at.plus_micros(boot.saturating_sub(self.heard_at_boot).max(0))
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.now_at(self.boot())
    }

    fn steps(&self) -> Steps {
        self.state.locked().steps.clone()
    }

    fn status(&self) -> ClockStatus {
        let now = self.now();
        let state = self.state.locked();
        let departure = state.timeline.departure();
        let off_by = departure.map_or(0, |departure| departure.by_micros) - state.measured.correction_micros;
        let since = departure.map(|departure| departure.since).or(state.corrected_since);
        ClockStatus {
            store_time: now,
            wall_time: now.plus_micros(off_by),
            since: since.filter(|_| off_by != 0),
            adopted_by_itself: !(state.timeline.is_ahead_at_start() || state.ahead_at_start),
            adopt_after_seconds: self.adopt_after_seconds,
            steps: state.steps.as_slice().len() as u64,
            steps_seen: state.timeline.departures(),
        }
    }
}

impl Timer for SharedClock {
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(sleep_until(self, self.jumps.subscribe(), at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    /// A shared clock whose measurements the test makes.
    fn shared(first: Measured) -> (SharedClock, std::sync::Arc<Mutex<Measured>>) {
        let newest = std::sync::Arc::new(Mutex::new(first));
        let measured = newest.clone();
        let measure = move || *measured.lock().unwrap();
        (SharedClock::new(Timestamp::default(), StoreClock::default(), 300, measure), newest)
    }

    fn heard(seconds: i64, heard_at_boot: i64) -> Measured {
        Measured {
            at: Timestamp::from_seconds(seconds),
            heard_at_boot,
            uncertainty: Duration::ZERO,
            correction_micros: 0,
            revision: 0,
        }
    }

    #[test]
    fn the_shared_clock_is_carried_on_between_measurements() {
        let start = boot_clock();
        let (clock, newest) = shared(heard(1_000, start));
        assert_eq!(clock.now_at(start + 7 * SECOND), Timestamp::from_seconds(1_007));
        *newest.lock().unwrap() = heard(1_012, start + 8 * SECOND);
        assert_eq!(clock.now_at(start + 9 * SECOND), Timestamp::from_seconds(1_013));
    }

    #[test]
    fn the_shared_clock_goes_on_by_boot_time_when_the_store_s_steps() {
        let start = boot_clock();
        let (clock, newest) = shared(heard(1_000, start));
        let after = |seconds: i64| start + seconds * SECOND;
        assert_eq!(clock.now_at(after(10)), Timestamp::from_seconds(1_010));
        // Two seconds ahead: at half its pace for four seconds.
        *newest.lock().unwrap() = heard(1_008, after(10));
        assert_eq!(clock.now_at(after(12)), Timestamp::from_seconds(1_011));
        assert_eq!(clock.now_at(after(20)), Timestamp::from_seconds(1_018));
        for stepped in [10, 5_000] {
            *newest.lock().unwrap() = heard(stepped, after(20));
            assert_eq!(clock.now_at(after(25)), Timestamp::from_seconds(1_023), "{stepped}");
        }
    }

    #[test]
    fn the_shared_clock_jumps_with_a_step_that_all_have_adopted() {
        let start = boot_clock();
        let (clock, newest) = shared(heard(1_000, start));
        let after = |seconds: i64| start + seconds * SECOND;
        assert_eq!(clock.now_at(after(10)), Timestamp::from_seconds(1_010));
        // Measured before this node has heard of the step: it waits.
        *newest.lock().unwrap() = Measured { revision: 1, ..heard(4_610, after(10)) };
        assert_eq!(clock.now_at(after(11)), Timestamp::from_seconds(1_011));
        assert!(clock.is_behind());
        let step = Step { from: Timestamp::from_seconds(1_010), to: Timestamp::from_seconds(4_610) };
        clock.learn(StoreClock { steps: Steps::new([step]), revision: 1, ..StoreClock::default() });
        assert_eq!(clock.now_at(after(12)), Timestamp::from_seconds(4_612));
        assert!(!clock.is_behind());
        assert_eq!(clock.state.lock().unwrap().timeline.departure(), None);
    }

    #[test]
    fn the_shared_clock_goes_on_when_the_nodes_have_corrected_a_step() {
        let start = boot_clock();
        let (clock, newest) = shared(heard(1_000, start));
        let after = |seconds: i64| start + seconds * SECOND;
        *newest.lock().unwrap() = heard(4_605, after(5));
        assert_eq!(clock.now_at(after(10)), Timestamp::from_seconds(1_010));
        let correction_micros = -3_600 * SECOND;
        let since = Some(Timestamp::from_seconds(1_010));
        let corrected_since = since;
        clock.learn(StoreClock { correction_micros, corrected_since, revision: 1, ..StoreClock::default() });
        // Also before anything was measured anew.
        assert_eq!(clock.now_at(after(11)), Timestamp::from_seconds(1_011));
        let corrected = Measured { correction_micros, revision: 1, ..heard(1_012, after(12)) };
        *newest.lock().unwrap() = corrected;
        assert_eq!(clock.now_at(after(13)), Timestamp::from_seconds(1_013));
        assert_eq!(clock.correction(), (correction_micros, since));
        assert_eq!(clock.state.lock().unwrap().timeline.departure(), None);
    }

    #[test]
    fn an_answer_that_took_too_long_is_no_measurement() {
        let start = boot_clock();
        let (clock, newest) = shared(heard(1_000, start));
        let late = Measured { uncertainty: Duration::from_secs(3), ..heard(1_004, start) };
        *newest.lock().unwrap() = late;
        assert_eq!(clock.now_at(start + SECOND), Timestamp::from_seconds(1_001));
    }
}
