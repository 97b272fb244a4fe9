//! Keeps the time of a store that one node has for itself: writes down where it stands, adopts steps that have lasted, and an operator's.
//!
//! A step is adopted in this order: the store keeps it and moves every lease that is held, in one write; the clock jumps; then the records
//! that are due by the new time, or after a step back all that are due later, have their timers moved by a fact each. Whoever comes to a
//! record before that moves its timers first (`plan.rs`), so nothing is decided on a time that has not passed.

use std::sync::Arc;
use std::time::Duration;

use domain::timeline::{Anchor, Step};
use domain::{Lease, RecordKind, Timestamp};
use store::DuePlace;
use tokio::sync::Mutex;

use crate::{Clock, Engine, EngineError, SystemClock, Wakes, rounded_seconds};

/// How often the clocks are compared at least. The store is not asked.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// An anchor that is off by more is written down anew.
const KEPT_WITHIN_MICROS: i64 = 1_000_000;
/// Records that are listed at once.
const PAGE: usize = 500;
/// Who moves timers, in the ledger.
const ACTOR: &str = "clock";
/// When whatever was on its way at a step back has arrived.
const LOOK_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// What keeps the time.
pub struct TimeKeeper {
    clock: Arc<SystemClock>,
    engine: Engine,
    wakes: Arc<Wakes>,
    /// What the store was told last. Held while a step is adopted: one at a time.
    kept: Mutex<Option<Anchor>>,
}

impl TimeKeeper {
    pub(crate) fn new(clock: Arc<SystemClock>, engine: Engine, wakes: Arc<Wakes>) -> Arc<Self> {
        Arc::new(Self { clock, engine, wakes, kept: Mutex::default() })
    }

    /// As long as the daemon runs. Whoever stops it drops this.
    pub(crate) async fn run(&self) {
        let adopt_after = Duration::from_secs(self.clock.status().adopt_after_seconds);
        let every = LOOK_EVERY.min(adopt_after / 4);
        self.go_on_with_a_step_back().await;
        let mut kept = true;
        loop {
            let looked = self.look().await;
            if let Err(error) = &looked
                && kept
            {
                // A full disk may last: said once, and tried again until it is written.
                tracing::warn!(code = error.code(), "the store's time was not kept: {error}");
            }
            kept = looked.is_ok();
            tokio::time::sleep(every).await;
        }
    }

    /// Makes store time what the wall clock says, at once; none if they agree.
    pub async fn set_right(&self) -> Result<Option<Step>, EngineError> {
        let mut kept = self.kept.lock().await;
        let Some(step) = self.clock.step_to_wall() else { return Ok(None) };
        self.adopt(step, &mut kept).await?;
        Ok(Some(step))
    }

    async fn look(&self) -> Result<(), EngineError> {
        let mut kept = self.kept.lock().await;
        if let Some(step) = self.clock.step_to_adopt() {
            return self.adopt(step, &mut kept).await;
        }
        let anchor = self.clock.anchor_after(None);
        if kept.is_none_or(|kept| !is_near(kept, anchor)) {
            self.engine.store().keep_clock(anchor, None).await?;
            *kept = Some(anchor);
        }
        Ok(())
    }

    async fn adopt(&self, step: Step, kept: &mut Option<Anchor>) -> Result<(), EngineError> {
        let anchor = self.clock.anchor_after(Some(step));
        self.engine.store().keep_clock(anchor, Some(step)).await?;
        self.clock.adopt(step);
        *kept = Some(anchor);
        let seconds = rounded_seconds(step.by_micros());
        tracing::warn!(
            seconds,
            "the step of the wall clock was adopted: leases and lives keep the time that they had left"
        );
        move_timers_or_say(&self.engine, step).await;
        self.wakes.look_again();
        look_again_later(&self.engine, step);
        Ok(())
    }

    /// A daemon that ended soon after a step back may not have moved every timer, and nobody would come to the rest before its time.
    async fn go_on_with_a_step_back(&self) {
        let now = self.clock.now();
        let is_gone_over = |step: &Step| step.by_micros() < 0 && now < step.from;
        if let Some(step) = self.clock.steps().as_slice().iter().copied().rfind(is_gone_over) {
            move_timers_or_say(&self.engine, step).await;
            self.wakes.look_again();
        }
    }
}

/// The step is adopted already: a timer that is not moved now is moved by whoever comes to its record.
pub(crate) async fn move_timers_or_say(engine: &Engine, step: Step) {
    if let Err(error) = move_timers(engine, step).await {
        tracing::warn!(code = error.code(), "not every timer was moved: {error}");
    }
}

/// After a step back, what was on its way then is looked for once more. Each fact wakes those whom its record concerns.
pub(crate) fn look_again_later(engine: &Engine, step: Step) {
    if step.by_micros() < 0 {
        let engine = engine.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
            move_timers_or_say(&engine, step).await;
        });
    }
}

/// Moves the timers of what a step concerns at once; the rest is moved when somebody comes to it.
///
/// After a step forward that is what is held: its limits moved with its lease, and only the record knows which of them are times of day.
/// After a step back it is everything that is due later: nobody would come to it before.
pub async fn move_timers(engine: &Engine, step: Step) -> Result<(), EngineError> {
    let now = engine.clock().now();
    let (kinds, from, until): (&[RecordKind], _, _) = if step.by_micros() > 0 {
        let longest_lease = u64::from(Lease::BOUNDS_SECONDS.1);
        (&[RecordKind::Job], step.from, now.plus_seconds(longest_lease))
    } else {
        (&RecordKind::ALL, now, Timestamp::from_micros(i64::MAX))
    };
    let mut moved = 0_u64;
    for kind in kinds {
        let mut after = DuePlace { at: from, id: None };
        loop {
            let due = engine.store().due_between(*kind, after.clone(), until, PAGE).await?;
            for (_, id) in &due {
                match engine.move_timers(id, Arc::from(ACTOR)).await {
                    Ok(was_moved) => moved += u64::from(was_moved),
                    // One record must not keep the others waiting.
                    Err(error @ (EngineError::Refused(_) | EngineError::Contended)) => {
                        tracing::warn!(record = %id, code = error.code(), "timers not moved: {error}");
                    }
                    Err(error) => return Err(error),
                }
            }
            match due.last() {
                Some((at, id)) if due.len() == PAGE => after = DuePlace { at: *at, id: Some(id.clone()) },
                Some(_) | None => break,
            }
        }
    }
    tracing::info!(records = moved, "timers were moved with the clock");
    Ok(())
}

fn is_near(kept: Anchor, anchor: Anchor) -> bool {
    let apart = kept.offset_micros.saturating_sub(anchor.offset_micros).saturating_abs();
    apart <= KEPT_WITHIN_MICROS && (kept.boot, kept.ahead_at_start) == (anchor.boot, anchor.ahead_at_start)
}
