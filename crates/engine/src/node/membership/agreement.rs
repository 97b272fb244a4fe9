//! How nodes agree on the time of the store that they share, after every heartbeat.
//!
//! The clock of the server, with a correction, is store time; the correction is one number in the database, the same for all. A node that
//! sees the corrected clock step, measured by its own boot-time clock, writes down that it does. What it does about it is in `verdict.rs`:
//!
//! - if most of the nodes that live see the same, the server's clock was set: the correction is changed by as much, so that store time goes
//!   on as if nothing had happened, also for nodes that are started now;
//! - if as many agree with the store for a while, this machine's clock is the odd one, and it follows the store;
//! - if nobody agrees with the store and most do not agree with each other until a step has to be adopted, the server's clock decides.
//!
//! A correction that has lasted is given up: store time jumps to the server's clock, with the leases of all who hold something. Each change
//! is made against the revision that it was decided on, so that only one node makes it. Whoever makes it moves the timers; the store knows
//! how much of that is left, and another node goes on with it if nobody does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use domain::Timestamp;
use domain::timeline::{Anchor, FOLLOWED_MICROS, Step};
use store::{Adopted, CLOCK, Correction, SharedStore, StoreClock};
use tokio::task::JoinHandle;

use super::answered;
use super::verdict::{Verdict, Watch, verdict};
use crate::locked::Locked;
use crate::timekeeper::{is_near, move_timers_in_passes};
use crate::{Clock, Engine, EngineError, SharedClock, Wakes, rounded_seconds};

/// How often an operator's order is tried again because another node was first.
const MAX_TRIES: usize = 4;
/// Whoever moves timers is given this long for each time that it goes over them; then another node goes on with it.
const MOVES_WITHIN_MICROS: i64 = 30_000_000;
/// It goes over them once more after a minute.
const NEXT_PASS_WITHIN_MICROS: i64 = 90_000_000;

/// What a node does about the store's time.
pub struct Agreement {
    engine: Engine,
    store: Arc<dyn SharedStore>,
    clock: Arc<SharedClock>,
    node_id: String,
    wakes: Arc<Wakes>,
    /// Whether this node has written down that it sees the store's clock step.
    sees_a_step: AtomicBool,
    watch: Mutex<Watch>,
    moving: Mutex<Option<JoinHandle<()>>>,
    /// What this node has kept last for whoever is started again on its machine.
    anchor: Mutex<Option<(Anchor, i64)>>,
    /// What is left to move, and since when nobody was seen to go on with it.
    left: Mutex<Option<(Adopted, u8, i64)>>,
}

/// Whether store time has jumped here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jumped {
    /// It has: this node says at once when it was heard of.
    Yes,
    /// It goes on.
    No,
}

impl Agreement {
    /// Of this node with those that share its store.
    pub fn new(
        engine: Engine,
        store: Arc<dyn SharedStore>,
        clock: Arc<SharedClock>,
        node_id: String,
        wakes: Arc<Wakes>,
    ) -> Self {
        let (watch, sees_a_step) = (Mutex::default(), AtomicBool::default());
        Self {
            engine,
            store,
            clock,
            node_id,
            wakes,
            sees_a_step,
            watch,
            moving: Mutex::default(),
            anchor: Mutex::default(),
            left: Mutex::default(),
        }
    }

    /// Compares, corrects, adopts: at most one change each time. After every heartbeat.
    pub async fn round(&self) -> Result<Jumped, EngineError> {
        let steps = self.clock.steps();
        if self.clock.is_behind() {
            self.learn().await?;
        }
        self.go_on_moving().await?;
        match self.clock.departure() {
            Some(departure) => {
                let lasted = self.clock.now().seconds_since(departure.since);
                self.disagree(departure.by_micros, lasted).await?;
            }
            None => {
                self.watch.locked().forget();
                if self.sees_a_step.load(Ordering::Relaxed) {
                    answered(self.store.see_step(&self.node_id, None)).await?;
                    self.sees_a_step.store(false, Ordering::Relaxed);
                } else {
                    self.adopt_what_lasted().await?;
                }
                self.keep_anchor().await?;
            }
        }
        Ok(if self.clock.steps() == steps { Jumped::No } else { Jumped::Yes })
    }

    /// Makes store time what the server's clock says, because somebody says so; the jump, if they disagreed.
    pub async fn set_right(&self, by: Arc<str>) -> Result<Option<Step>, EngineError> {
        for _ in 0..MAX_TRIES {
            // What was measured before the server's clock was set says nothing.
            answered(self.store.pulse(&self.node_id)).await?;
            let Some(known) = self.known_to_this_clock().await? else { continue };
            let departure = self.clock.departure();
            if let Some(departure) = departure
                && known.correction_micros == 0
                && self.others_agree_with_the_store(departure.by_micros).await?
            {
                // The others are right: nothing of theirs is moved.
                let followed = self.clock.follow_the_store();
                self.wakes.look_again();
                return Ok(followed);
            }
            let off_by = departure.map_or(0, |departure| departure.by_micros);
            let by_micros = off_by.saturating_sub(known.correction_micros);
            if by_micros == 0 {
                return Ok(None);
            }
            if let Some(step) = self.adopt(known.revision, by_micros, by.clone()).await? {
                return Ok(Some(step));
            }
        }
        Err(EngineError::Contended)
    }

    /// Waits until this node has moved the timers of a step that it has adopted, as far as can be done at once.
    pub async fn moved(&self) {
        let moving = self.moving.locked().take();
        if let Some(moving) = moving {
            let _ = moving.await;
        }
    }

    async fn disagree(&self, by_micros: i64, lasted: u64) -> Result<(), EngineError> {
        self.sees_a_step.store(true, Ordering::Relaxed);
        let sights = answered(self.store.see_step(&self.node_id, Some(by_micros))).await?;
        let others = self.watch.locked().look(&self.node_id, &sights, self.clock.boot());
        match verdict(by_micros, lasted, self.clock.adopt_after_seconds(), &others) {
            Verdict::Wait => Ok(()),
            Verdict::Correct => self.correct(by_micros).await,
            Verdict::Follow => {
                self.clock.follow_the_store();
                self.wakes.look_again();
                Ok(())
            }
            Verdict::Adopt if self.clock.status().adopted_by_itself => {
                let Some(known) = self.known_to_this_clock().await? else { return Ok(()) };
                tracing::warn!("no two nodes agree on the store's time: the server's clock decides");
                let by_micros = by_micros.saturating_sub(known.correction_micros);
                self.adopt(known.revision, by_micros, Arc::from(CLOCK)).await.map(|_| ())
            }
            Verdict::Adopt => Ok(()),
        }
    }

    /// Whether a node that lives was heard of since this one disagrees, and agrees with the store.
    async fn others_agree_with_the_store(&self, by_micros: i64) -> Result<bool, EngineError> {
        let sights = answered(self.store.see_step(&self.node_id, Some(by_micros))).await?;
        self.sees_a_step.store(true, Ordering::Relaxed);
        let others = self.watch.locked().look(&self.node_id, &sights, self.clock.boot());
        Ok(others.iter().any(|other| other.was_heard && other.by_micros.is_none()))
    }

    /// The server's clock was set by so much: store time goes on.
    async fn correct(&self, by_micros: i64) -> Result<(), EngineError> {
        let Some(known) = self.known_to_this_clock().await? else { return Ok(()) };
        let micros = known.correction_micros.saturating_sub(by_micros);
        // The server's clock is right again, but for what is followed anyway.
        let micros = if micros.saturating_abs() <= FOLLOWED_MICROS { 0 } else { micros };
        let status = self.clock.status();
        let correction = Correction {
            revision: known.revision,
            micros,
            since: since(&known, micros, status.store_time),
            ahead_at_start: !status.adopted_by_itself && micros > 0,
            adopted: None,
        };
        if answered(self.store.correct_clock(correction)).await? {
            let seconds = rounded_seconds(by_micros);
            tracing::warn!(seconds, "the nodes agree that the store's clock was set: their time goes on");
        }
        self.learn().await
    }

    async fn adopt_what_lasted(&self) -> Result<(), EngineError> {
        let (micros, Some(since)) = self.clock.correction() else { return Ok(()) };
        let lasted = self.clock.now().seconds_since(since) >= self.clock.adopt_after_seconds();
        if micros == 0 || !lasted || self.clock.waits_for_operator() {
            return Ok(());
        }
        let Some(known) = self.known_to_this_clock().await? else { return Ok(()) };
        self.adopt(known.revision, micros.saturating_neg(), Arc::from(CLOCK)).await.map(|_| ())
    }

    /// Store time jumps by so much to the server's clock, for all nodes; none if something else was changed first.
    async fn adopt(&self, revision: i64, by_micros: i64, by: Arc<str>) -> Result<Option<Step>, EngineError> {
        let from = self.clock.now();
        let step = Step { from, to: from.plus_micros(by_micros) };
        let adopted = Adopted { step, by };
        let correction = Correction {
            revision,
            micros: 0,
            since: from,
            ahead_at_start: false,
            adopted: Some(adopted.clone()),
        };
        let made = answered(self.store.correct_clock(correction)).await?;
        // Heard at once: what is measured from now on is after the step.
        answered(self.store.pulse(&self.node_id)).await?;
        self.learn().await?;
        if !made {
            return Ok(None);
        }
        let seconds = rounded_seconds(by_micros);
        tracing::warn!(
            seconds,
            by = &*adopted.by,
            "the step of the store's clock was adopted: leases and lives keep the time that they had left"
        );
        self.begin_to_move(adopted, store::passes(step));
        Ok(Some(step))
    }

    /// In a task of its own: heartbeats go on.
    fn begin_to_move(&self, adopted: Adopted, passes: u8) {
        let moving = tokio::spawn(move_timers_in_passes(self.engine.clone(), adopted, passes));
        *self.moving.locked() = Some(moving);
    }

    /// A node that has adopted a step may have died before it moved the timers.
    async fn go_on_moving(&self) -> Result<(), EngineError> {
        let Some((adopted, passes)) = self.clock.unmoved() else { return Ok(()) };
        let boot = self.clock.boot();
        let since = {
            let mut left = self.left.locked();
            match &*left {
                Some((known, known_passes, since)) if (known, *known_passes) == (&adopted, passes) => *since,
                Some(_) | None => {
                    *left = Some((adopted.clone(), passes, boot));
                    boot
                }
            }
        };
        let begun = passes < store::passes(adopted.step);
        let within = if begun { NEXT_PASS_WITHIN_MICROS } else { MOVES_WITHIN_MICROS };
        if boot.saturating_sub(since) < within {
            return Ok(());
        }
        let known = answered(self.store.clock()).await?;
        let now_left = known.unmoved().map(|adopted| (adopted, known.passes_left));
        if now_left.as_ref() == Some(&(adopted.clone(), passes)) && known.revision == self.clock.revision() {
            tracing::warn!(
                "whoever adopted the step of the clock did not move all timers: this node goes on"
            );
            self.begin_to_move(adopted, passes);
            *self.left.locked() = None;
        }
        self.clock.hear_of_unmoved(now_left);
        Ok(())
    }

    /// A node that is started again on this machine goes on by the machine's clock, also if the server's was set meanwhile.
    async fn keep_anchor(&self) -> Result<(), EngineError> {
        let Some((anchor, revision)) = self.clock.anchor() else { return Ok(()) };
        let kept = *self.anchor.locked();
        if kept.is_none_or(|(kept, of)| of != revision || !is_near(kept, anchor)) {
            answered(self.store.keep_anchor(anchor, revision)).await?;
            *self.anchor.locked() = Some((anchor, revision));
        }
        Ok(())
    }

    async fn learn(&self) -> Result<(), EngineError> {
        let known = answered(self.store.clock()).await?;
        self.take_over(known);
        Ok(())
    }

    /// What the store knows of its time, if this clock knows the same. Else another node was first: a step that was seen may be corrected
    /// already.
    async fn known_to_this_clock(&self) -> Result<Option<StoreClock>, EngineError> {
        let known = answered(self.store.clock()).await?;
        if known.revision == self.clock.revision() {
            return Ok(Some(known));
        }
        self.take_over(known);
        Ok(None)
    }

    fn take_over(&self, known: StoreClock) {
        self.clock.learn(known);
        self.watch.locked().forget();
        self.wakes.look_again();
    }
}

/// Since when a correction is in force: one that is changed by more than what is followed has to last anew.
fn since(known: &StoreClock, micros: i64, now: Timestamp) -> Timestamp {
    let apart = micros.saturating_sub(known.correction_micros).saturating_abs();
    known.corrected_since.filter(|_| apart <= FOLLOWED_MICROS).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correction_that_changes_has_to_last_anew() {
        let (then, now) = (Timestamp::from_seconds(1_000), Timestamp::from_seconds(1_290));
        let known = StoreClock {
            correction_micros: 600_000_000,
            corrected_since: Some(then),
            ..StoreClock::default()
        };
        for (micros, expected) in [
            (600_000_000, then),
            (600_000_000 + FOLLOWED_MICROS, then),
            (600_000_001 + FOLLOWED_MICROS, now),
            (-3_000_000_000, now),
        ] {
            assert_eq!(since(&known, micros, now), expected, "{micros}");
        }
        assert_eq!(since(&StoreClock::default(), 600_000_000, now), now, "the first one begins now");
    }
}
