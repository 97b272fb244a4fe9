//! How store time follows the clocks of a machine: the rules of stepping, without a clock in them.
//!
//! Two clocks are observed. The boot-time clock counts time that passes, also while the machine is suspended, and nobody sets it. The wall
//! clock says what time it is, and may be set. Store time goes by the boot-time clock and is compared with the wall clock:
//!
//! - A small difference is followed: forward at once, backward by going at half the pace.
//! - A larger one is a *step*. Store time goes on by the boot-time clock. If the step goes away, nothing has happened; if it has lasted, it
//!   is adopted: store time jumps by it, once, and [`Steps`] remembers where.
//! - After a reboot there is nothing to compare with but the newest fact. A store that is ahead of the wall clock goes on from its newest
//!   fact and is not set back by itself: a wall clock that was not set yet is more likely than a store from the future.
//!
//! `Timeline::observe(boot, wall)` decides all of it; [`Steps`] says by how much a timer that was set before a step has to be moved, so that
//! a lease and a life are as long as the time that passed. The file that reads the clocks is `engine/src/runtime/clock.rs`.

#[cfg(test)]
mod tests;

use crate::Timestamp;
use crate::planted::{Bug, planted};

/// A difference up to this is followed, a larger one is a step.
pub const FOLLOWED_MICROS: i64 = 5_000_000;
/// For a planted bug: the machine was suspended if nobody has looked at its clocks for longer.
const LONGEST_AWAKE_MICROS: i64 = 30_000_000;
/// Steps that are remembered.
pub const MAX_STEPS: usize = 16;
/// A step that has lasted so long is adopted, unless the configuration says otherwise.
pub const ADOPT_AFTER_SECONDS: u64 = 300;
/// What a configuration may say instead.
pub const ADOPT_AFTER_BOUNDS_SECONDS: (u64, u64) = (1, 86_400);

/// A jump of store time that was adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Store time when it was adopted, as it was before.
    pub from: Timestamp,
    /// What it jumped to.
    pub to: Timestamp,
}

/// The steps of a store, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps(Vec<Step>);

/// Where store time was in relation to the boot-time clock: for whoever is started again while the machine runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Names the boot of the machine.
    pub boot: i64,
    /// Store time minus the boot-time clock, in microseconds.
    pub offset_micros: i64,
    /// Whether the store was ahead of the wall clock when the machine had started anew.
    pub ahead_at_start: bool,
}

/// A wall clock that does not agree with store time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The wall clock minus store time, in microseconds.
    pub by_micros: i64,
    /// Since when, in store time.
    pub since: Timestamp,
    /// Since when, by the boot-time clock.
    since_boot: i64,
}

/// What one look at the clocks came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Store time. Never earlier than the last one, but for a step back that was adopted.
    pub now: Timestamp,
    /// What is new, once.
    pub news: Option<News>,
    /// The step that has lasted long enough to be adopted.
    pub adopt: Option<Step>,
}

/// What is worth a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The wall clock has departed by so many microseconds.
    Departed(i64),
    /// It agrees again, after it was off by so many: nothing has happened.
    Returned(i64),
}

/// Store time on one machine.
#[derive(Clone, Debug)]
pub struct Timeline {
    offset_micros: i64,
    last: Timestamp,
    last_boot: i64,
    departure: Option<Departure>,
    ahead_at_start: bool,
    adopt_after_micros: i64,
    departures: u64,
}

impl Timeline {
    /// Starts at this look at the clocks, no earlier than the newest fact. An anchor is given only if it is of this boot of the machine.
    pub fn start(boot: i64, wall: Timestamp, newest_fact: Timestamp, anchor: Option<Anchor>) -> Self {
        let (now, ahead_at_start) = match anchor {
            Some(anchor) => {
                (Timestamp::from_micros(boot.saturating_add(anchor.offset_micros)), anchor.ahead_at_start)
            }
            None => (wall, newest_fact.micros().saturating_sub(wall.micros()) > FOLLOWED_MICROS),
        };
        let now = now.max(newest_fact);
        Self {
            offset_micros: now.micros().saturating_sub(boot),
            last: now,
            last_boot: boot,
            departure: None,
            ahead_at_start,
            adopt_after_micros: seconds(ADOPT_AFTER_SECONDS),
            departures: 0,
        }
    }

    /// The same, with another time that a step has to last.
    #[must_use]
    pub fn adopting_after(mut self, adopt_after_seconds: u64) -> Self {
        self.adopt_after_micros = seconds(adopt_after_seconds);
        self
    }

    /// Store time at this look at the clocks.
    pub fn observe(&mut self, boot: i64, wall: Timestamp) -> Reading {
        if planted(Bug::SuspendNotCounted) {
            let asleep = boot.saturating_sub(self.last_boot).saturating_sub(LONGEST_AWAKE_MICROS).max(0);
            self.offset_micros = self.offset_micros.saturating_sub(asleep);
        }
        let by_boot = Timestamp::from_micros(boot.saturating_add(self.offset_micros));
        let off_by = wall.micros().saturating_sub(by_boot.micros());
        let follows = off_by.saturating_abs() <= FOLLOWED_MICROS || planted(Bug::StepBelievedAtOnce);
        let mut reading = Reading { now: by_boot, news: None, adopt: None };
        if follows {
            let departure =
                if planted(Bug::GlitchRemembered) { self.departure } else { self.departure.take() };
            reading.news = departure.map(|departure| News::Returned(departure.by_micros));
            self.ahead_at_start = false;
            reading.now = self.follow(boot, wall);
        } else {
            reading.news = self.depart(boot, by_boot, off_by);
            reading.adopt = self.lasting(boot).map(|by| Step { from: by_boot, to: by_boot.plus_micros(by) });
        }
        reading.now = reading.now.max(self.last);
        (self.last, self.last_boot) = (reading.now, boot);
        reading
    }

    /// Jumps by a step that was read off this timeline. Going back, `now` is earlier than the last one: this once.
    pub fn adopt(&mut self, step: Step) {
        self.offset_micros = self.offset_micros.saturating_add(step.by_micros());
        self.last = self.last.plus_micros(step.by_micros());
        self.departure = None;
        self.ahead_at_start = false;
    }

    /// The wall clock minus store time at this look at the clocks, in microseconds.
    pub const fn off_by(&self, boot: i64, wall: Timestamp) -> i64 {
        wall.micros().saturating_sub(boot.saturating_add(self.offset_micros))
    }

    /// The step that makes store time what the wall clock says, however long that has been off: for an operator's order.
    pub fn step_to_wall(&self) -> Option<Step> {
        let departure = self.departure?;
        Some(Step { from: self.last, to: self.last.plus_micros(departure.by_micros) })
    }

    /// Whoever tells the wall clock has corrected it: a difference that was known is no news any more.
    pub fn expect_agreement(&mut self) {
        self.departure = None;
    }

    /// How the wall clock disagrees, if it does.
    pub const fn departure(&self) -> Option<Departure> {
        self.departure
    }

    /// How often the wall clock has departed.
    pub const fn departures(&self) -> u64 {
        self.departures
    }

    /// Whether it is ahead of the wall clock since the machine has started anew, and waits for an operator.
    pub const fn is_ahead_at_start(&self) -> bool {
        self.ahead_at_start
    }

    /// What whoever is started again must know.
    pub const fn anchor(&self, boot: i64) -> Anchor {
        Anchor { boot, offset_micros: self.offset_micros, ahead_at_start: self.ahead_at_start }
    }

    /// Forward at once, backward at half the pace until the wall clock has caught up.
    fn follow(&mut self, boot: i64, wall: Timestamp) -> Timestamp {
        let passed = boot.saturating_sub(self.last_boot).max(0);
        let now = wall.max(self.last.plus_micros(passed / 2));
        self.offset_micros = now.micros().saturating_sub(boot);
        now
    }

    fn depart(&mut self, boot: i64, now: Timestamp, by_micros: i64) -> Option<News> {
        let apart = |known: &Departure| by_micros.saturating_sub(known.by_micros).saturating_abs();
        match &mut self.departure {
            Some(known) if apart(known) <= FOLLOWED_MICROS => {
                known.by_micros = by_micros;
                None
            }
            other => {
                self.departures += 1;
                let remembered = other.filter(|_| planted(Bug::GlitchRemembered));
                let since_boot = remembered.map_or(boot, |departure| departure.since_boot);
                *other = Some(Departure { by_micros, since: now, since_boot });
                Some(News::Departed(by_micros))
            }
        }
    }

    fn lasting(&self, boot: i64) -> Option<i64> {
        let departure = self.departure?;
        let waits_for_operator = self.ahead_at_start && departure.by_micros < 0;
        let lasted = boot.saturating_sub(departure.since_boot) >= self.adopt_after_micros;
        (lasted && !waits_for_operator && !planted(Bug::StepNotAdopted)).then_some(departure.by_micros)
    }
}

impl Step {
    /// By how much store time jumped; negative if it went back.
    pub const fn by_micros(self) -> i64 {
        self.to.micros().saturating_sub(self.from.micros())
    }
}

impl Steps {
    /// These, oldest first.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        steps.into_iter().fold(Self::default(), |mut steps, step| {
            steps.push(step);
            steps
        })
    }

    /// Adds the newest.
    pub fn push(&mut self, step: Step) {
        if self.0.len() >= MAX_STEPS {
            self.0.remove(0);
        }
        self.0.push(step);
    }

    /// Oldest first.
    pub fn as_slice(&self) -> &[Step] {
        &self.0
    }

    /// By how much a timer has to be moved that was set at a time, so that it measures time that passed. Zero if nothing jumped since.
    ///
    /// It is moved by every step since, both ways. What lies ahead of now is brought back at least to now.
    pub fn since(&self, set_at: Timestamp, now: Timestamp) -> i64 {
        let by = sum(&self.0[self.adopted_before(set_at, now)..]);
        let ahead = set_at.micros().saturating_sub(now.micros());
        if ahead > 0 && by < 0 { by.min(ahead.saturating_neg()) } else { by }
    }

    /// The sum of the steps that were adopted since somebody looked.
    pub fn not_in(&self, seen: &Self) -> i64 {
        let new = self.0.iter().filter(|step| !seen.0.contains(step));
        new.fold(0, |by: i64, step| by.saturating_add(step.by_micros()))
    }

    /// A time that was read off the clock before a step and is used after it, when store time is `now`.
    ///
    /// A time before the end of a step forward was read before it. A time that lies ahead of `now`, and no further than where a clock would
    /// be that has not heard of a step back, was read by such a clock. Where `now` is not known, only steps forward are carried over.
    #[must_use]
    pub fn carried(&self, read_at: Timestamp, now: Option<Timestamp>) -> Timestamp {
        // A clock that says what was before the newest step was set itself.
        let newest = self.0.last().map_or(Timestamp::default(), |step| step.to);
        let now = now.filter(|now| newest <= now.plus_micros(FOLLOWED_MICROS));
        if let Some(by_micros) = now.and_then(|now| self.unheard(read_at, now)) {
            return read_at.plus_micros(by_micros);
        }
        // Time goes over what lies behind a step back once more: earlier steps say nothing of a time there.
        let forward = self.0.rsplit(|step| step.by_micros() < 0).next().unwrap_or_default();
        let carried = forward
            .iter()
            .fold(read_at, |at, step| if at < step.to { at.plus_micros(step.by_micros()) } else { at });
        // A clock that is behind has heard of the step all the same: it is carried no further than where time is.
        now.map_or(carried, |now| carried.min(now.max(read_at)))
    }

    /// The steps back that whoever has read this time had not heard of, as one; none if that explains nothing.
    fn unheard(&self, read_at: Timestamp, now: Timestamp) -> Option<i64> {
        let is_ahead_of = |clock: Timestamp| read_at > clock.plus_micros(FOLLOWED_MICROS);
        if !is_ahead_of(now) || planted(Bug::TimeBeforeStepBackBelieved) {
            return None;
        }
        let newest = self.0.iter().rev().take_while(|step| step.by_micros() < 0);
        let mut unheard = newest.scan(0_i64, |sum, step| {
            *sum = sum.saturating_add(step.by_micros());
            Some(*sum)
        });
        unheard.find(|by_micros| !is_ahead_of(now.plus_micros(by_micros.saturating_neg())))
    }

    /// How many of the steps had been adopted when a time was read off the clock.
    ///
    /// After a step, time runs from the step's end to the start of the next, and after the newest one to now. After a step back it goes over
    /// a stretch once more: a time there counts as the newer of the two, because what had the older one is moved as soon as the step is
    /// adopted (`engine/src/runtime/timekeeper.rs`).
    fn adopted_before(&self, at: Timestamp, now: Timestamp) -> usize {
        let Some(newest) = self.0.last() else { return 0 };
        let has_begun = |adopted: usize| adopted == 0 || self.0[adopted - 1].to <= at;
        // Another node may be a little ahead, but not by more than what has passed since the step.
        let passed = now.micros().saturating_sub(newest.to.micros());
        let ahead = passed.clamp(0, FOLLOWED_MICROS);
        let newest = self.0.len();
        if has_begun(newest) && at <= now.plus_micros(ahead) {
            return newest;
        }
        let older = || (0..newest).rev().filter(|adopted| has_begun(*adopted));
        let is_within = |adopted: &usize| at <= self.0[*adopted].from.plus_micros(FOLLOWED_MICROS);
        let found = older().find(is_within).or_else(|| older().next()).unwrap_or_default();
        // A time ahead of now was read before a step back, or by somebody who knows of a step that is not known here.
        let explains = at <= now || sum(&self.0[found..]) < 0;
        if explains { found } else { newest }
    }
}

fn sum(steps: &[Step]) -> i64 {
    steps.iter().fold(0, |by, step| by.saturating_add(step.by_micros()))
}

fn seconds(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000)
}
