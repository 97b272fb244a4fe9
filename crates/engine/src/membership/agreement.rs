//! How nodes agree on the time of the store that they share, after every heartbeat.
//!
//! The clock of the server, with a correction, is store time; the correction is one number in the database, the same for all. A node that
//! sees the corrected clock step, measured by its own boot-time clock, writes down that it does:
//!
//! - if most of the nodes that live see the same, the server's clock was set: the correction is changed by as much, so that store time goes
//!   on as if nothing had happened, also for nodes that are started now;
//! - if nobody else does for a while, this machine's clock is the odd one, and it follows the others.
//!
//! A correction that has lasted is given up: store time jumps to the server's clock, with the leases of all who hold something. Each change
//! is made against the revision that it was decided on, so that only one node makes it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::Timestamp;
use domain::timeline::{FOLLOWED_MICROS, Step};
use store::{Correction, StoreClock};

use super::{Member, answered};
use crate::timekeeper::{look_again_later, move_timers_or_say};
use crate::{Clock, EngineError, SharedClock, rounded_seconds};

/// A step that no other node has seen for this long is this machine's own: three heartbeats.
const SEEN_ALONE_SECONDS: u64 = 30;

impl Member {
    /// Compares, corrects, adopts: at most one change each time.
    pub(super) async fn agree_on_time(&self) {
        let Some(clock) = self.standing.shared_clock() else { return };
        if let Err(error) = self.try_to_agree(clock).await {
            tracing::warn!(code = error.code(), "the store's time was not compared: {error}");
        }
    }

    async fn try_to_agree(&self, clock: &Arc<SharedClock>) -> Result<(), EngineError> {
        if clock.is_behind() {
            clock.learn(answered(self.membership.store.clock()).await?);
            self.wakes.look_again();
        }
        let node_id = &self.membership.node.id;
        match clock.departure() {
            Some(departure) => {
                self.sees_a_step.store(true, Ordering::Relaxed);
                let seen = self.membership.store.see_step(node_id, Some(departure.by_micros));
                let seen = answered(seen).await?;
                if seen.agree_on(departure.by_micros) {
                    return self.correct(clock, departure.by_micros).await;
                }
                let lasted = clock.now().seconds_since(departure.since);
                if seen.seen_micros.len() < 2 && lasted >= SEEN_ALONE_SECONDS {
                    clock.follow_the_store();
                }
                Ok(())
            }
            None if self.sees_a_step.load(Ordering::Relaxed) => {
                answered(self.membership.store.see_step(node_id, None)).await?;
                self.sees_a_step.store(false, Ordering::Relaxed);
                Ok(())
            }
            None => self.adopt_what_lasted(clock).await,
        }
    }

    /// The server's clock was set by so much: store time goes on.
    async fn correct(&self, clock: &SharedClock, by_micros: i64) -> Result<(), EngineError> {
        let known = answered(self.membership.store.clock()).await?;
        if known.revision != clock.revision() {
            // Another node was first: the step that was seen may be corrected already.
            return self.learn(clock).await;
        }
        let micros = known.correction_micros.saturating_sub(by_micros);
        // The server's clock is right again, but for what is followed anyway.
        let micros = if micros.saturating_abs() <= FOLLOWED_MICROS { 0 } else { micros };
        let status = clock.status();
        let correction = Correction {
            revision: known.revision,
            micros,
            since: since(&known, micros, status.store_time),
            ahead_at_start: !status.adopted_by_itself && micros > 0,
            step: None,
        };
        if answered(self.membership.store.correct_clock(correction)).await? {
            let seconds = rounded_seconds(by_micros);
            tracing::warn!(seconds, "the nodes agree that the store's clock was set: their time goes on");
        }
        self.learn(clock).await
    }

    async fn adopt_what_lasted(&self, clock: &SharedClock) -> Result<(), EngineError> {
        let (micros, Some(since)) = clock.correction() else { return Ok(()) };
        let lasted = clock.now().seconds_since(since) >= clock.adopt_after_seconds();
        if micros == 0 || !lasted || clock.waits_for_operator() {
            return Ok(());
        }
        give_up_correction(&self.engine, &*self.membership.store, clock).await?;
        self.wakes.look_again();
        Ok(())
    }

    async fn learn(&self, clock: &SharedClock) -> Result<(), EngineError> {
        clock.learn(answered(self.membership.store.clock()).await?);
        self.wakes.look_again();
        Ok(())
    }
}

/// Since when a correction is in force: one that is changed by more than what is followed has to last anew.
fn since(known: &StoreClock, micros: i64, now: Timestamp) -> Timestamp {
    let apart = micros.saturating_sub(known.correction_micros).saturating_abs();
    known.corrected_since.filter(|_| apart <= FOLLOWED_MICROS).unwrap_or(now)
}

/// Makes store time what the server's clock says, if they disagree; the step that did it.
pub(crate) async fn give_up_correction(
    engine: &crate::Engine,
    store: &dyn store::SharedStore,
    clock: &SharedClock,
) -> Result<Option<Step>, EngineError> {
    let known: StoreClock = answered(store.clock()).await?;
    if known.correction_micros == 0 {
        return Ok(None);
    }
    let from = clock.now();
    let step = Step { from, to: from.plus_micros(-known.correction_micros) };
    let given_up = Correction {
        revision: known.revision,
        micros: 0,
        since: from,
        ahead_at_start: false,
        step: Some(step),
    };
    let made = answered(store.correct_clock(given_up)).await?;
    // Heard at once: what is measured from now on is after the step.
    answered(store.pulse("")).await?;
    clock.learn(answered(store.clock()).await?);
    if !made {
        return Ok(None);
    }
    let seconds = rounded_seconds(step.by_micros());
    tracing::warn!(
        seconds,
        "the step of the store's clock was adopted: leases and lives keep the time that they had left"
    );
    move_timers_or_say(engine, step).await;
    look_again_later(engine, step);
    Ok(Some(step))
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
