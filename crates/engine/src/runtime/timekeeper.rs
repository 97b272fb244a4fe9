//! Keeps the time of a store that one node has for itself: writes down where it stands, adopts steps that have lasted, and an operator's.
//!
//! A step is adopted in this order: the store keeps it and moves every lease that is held, in one write; the clock jumps; then the records
//! that are due by the new time, or after a step back all that are due later, have their timers moved by a fact each. Whoever comes to a
//! record before that moves its timers first (`plan.rs`), so nothing is decided on a time that has not passed.
//!
//! The store knows how often timers must still be moved over the newest step. Whoever finds that nobody does it goes on with it: a daemon when
//! it is started again, and where nodes share the store, another node.

use std::sync::Arc;
use std::time::Duration;

use domain::timeline::{Anchor, Step};
use domain::{Lease, RecordKind, Timestamp};
use store::{Adopted, DuePlace};
use tokio::sync::Mutex;

use crate::{Clock, Engine, EngineError, SystemClock, Wakes, rounded_seconds};

/// How often the clocks are compared at least. The store is not asked.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// An anchor that is off by more is written down anew.
const KEPT_WITHIN_MICROS: i64 = 1_000_000;
/// Records that are listed at once.
const PAGE: usize = 500;
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
        self.go_on_moving().await;
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

    /// Makes store time what the wall clock says, at once, because an operator says so; none if they agree.
    pub async fn set_right(&self, by: Arc<str>) -> Result<Option<Step>, EngineError> {
        let mut kept = self.kept.lock().await;
        let Some(step) = self.clock.step_to_wall() else { return Ok(None) };
        self.adopt(Adopted { step, by }, &mut kept).await?;
        Ok(Some(step))
    }

    async fn look(&self) -> Result<(), EngineError> {
        let mut kept = self.kept.lock().await;
        if let Some(step) = self.clock.step_to_adopt() {
            return self.adopt(step.into(), &mut kept).await;
        }
        let anchor = self.clock.anchor_after(None);
        if kept.is_none_or(|kept| !is_near(kept, anchor)) {
            self.engine.store().keep_clock(anchor, None).await?;
            *kept = Some(anchor);
        }
        Ok(())
    }

    async fn adopt(&self, adopted: Adopted, kept: &mut Option<Anchor>) -> Result<(), EngineError> {
        let step = adopted.step;
        let anchor = self.clock.anchor_after(Some(step));
        self.engine.store().keep_clock(anchor, Some(adopted.clone())).await?;
        self.clock.adopt(step);
        *kept = Some(anchor);
        let seconds = rounded_seconds(step.by_micros());
        tracing::warn!(
            seconds,
            by = &*adopted.by,
            "the step of the wall clock was adopted: leases and lives keep the time that they had left"
        );
        let passes = store::passes(step);
        move_timers_in_passes(self.engine.clone(), adopted, passes).await;
        self.wakes.look_again();
        Ok(())
    }

    /// A daemon that ended soon after a step may not have moved every timer, and after one back nobody would come to the rest before its
    /// time.
    async fn go_on_moving(&self) {
        match self.engine.store().clock().await {
            Ok(known) => {
                if let Some(adopted) = known.unmoved() {
                    move_timers_in_passes(self.engine.clone(), adopted, known.passes_left).await;
                    self.wakes.look_again();
                }
            }
            Err(error) => {
                tracing::warn!(code = error.code(), "the steps of the clock are not known: {error}");
            }
        }
    }
}

/// Moves timers over a step as often as is left to do, and writes down that it was done. The first time is over when this returns; each fact
/// wakes those whom its record concerns. What fails is said, and left to whoever goes on with it: a timer that is not moved now is
/// moved by whoever comes to its record.
pub(crate) async fn move_timers_in_passes(engine: Engine, adopted: Adopted, passes: u8) {
    let left = passes.saturating_sub(1);
    if !move_timers_once(&engine, &adopted, left).await || left == 0 {
        return;
    }
    tokio::spawn(async move {
        for left in (0..left).rev() {
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
            if !move_timers_once(&engine, &adopted, left).await {
                return;
            }
        }
    });
}

async fn move_timers_once(engine: &Engine, adopted: &Adopted, passes_left: u8) -> bool {
    let moved = async {
        move_timers(engine, adopted).await?;
        Ok::<_, EngineError>(engine.store().timers_moved(adopted.step, passes_left).await?)
    };
    let moved = moved.await;
    if let Err(error) = &moved {
        tracing::warn!(code = error.code(), "not every timer was moved: {error}");
    }
    moved.is_ok()
}

/// Moves the timers of what a step concerns at once; the rest is moved when somebody comes to it.
///
/// After a step forward that is what is held: its limits moved with its lease, and only the record knows which of them are times of day.
/// After a step back it is everything that is due later: nobody would come to it before. Each fact names whoever adopted the step.
pub async fn move_timers(engine: &Engine, adopted: &Adopted) -> Result<(), EngineError> {
    let (now, step) = (engine.clock().now(), adopted.step);
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
                match engine.move_timers(id, adopted.by.clone()).await {
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

pub(crate) fn is_near(kept: Anchor, anchor: Anchor) -> bool {
    let apart = kept.offset_micros.saturating_sub(anchor.offset_micros).saturating_abs();
    apart <= KEPT_WITHIN_MICROS && (kept.boot, kept.ahead_at_start) == (anchor.boot, anchor.ahead_at_start)
}
