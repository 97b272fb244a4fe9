//! What a scripted executor will do with its job, drawn when it begins.

use domain::Claim;
use domain::job::{AfterExternal, CancelAnswer, Retryable};

use crate::counters::Struck;
use crate::heap::SECOND;
use crate::rng::Rng;
use crate::world::World;

/// What an executor will do.
pub(crate) struct Script {
    pub(crate) says_started: bool,
    pub(crate) work: i64,
    pub(crate) renewal: Renewal,
    pub(crate) act: Act,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// As often as the lease asks for.
    InTime,
    /// When hardly any of it is left.
    LastSecond,
    /// Never.
    Forgotten,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Complete,
    Fail(Retryable),
    AwaitInput,
    Block,
    Defer(AfterExternal),
    Unavailable,
    Vanish,
}

impl Script {
    pub(crate) fn draw(world: &mut World, lane: &str) -> Self {
        let calm = world.is_calm();
        let lease = world.setting.lease_micros;
        let rng = &mut world.rng;
        if calm {
            let act = if lane == "outside" && rng.chance(500) {
                Act::Defer(AfterExternal::Finish)
            } else {
                Act::Complete
            };
            return Self {
                says_started: true,
                work: rng.within(0, 20 * SECOND),
                renewal: Renewal::InTime,
                act,
            };
        }
        let misbehaves = rng.chance(world.faults.executor);
        if misbehaves {
            world.counters.struck(Struck::Executor);
        }
        let act = match (lane, rng.below(10)) {
            _ if misbehaves && rng.chance(300) => Act::Vanish,
            ("outside", 0..=6) => Act::Defer(rng.pick(&[AfterExternal::Finish, AfterExternal::Resume])),
            (_, 0..=4) => Act::Complete,
            (_, 5..=6) => Act::Fail(Retryable::Yes),
            (_, 7) => Act::Fail(Retryable::No),
            (_, 8) => rng.pick(&[Act::AwaitInput, Act::Block]),
            _ => rng.pick(&[Act::AwaitInput, Act::Unavailable]),
        };
        let work = if rng.chance(600) { rng.within(0, 5 * SECOND) } else { rng.within(0, 2 * lease) };
        let renewal = match rng.below(4) {
            0 if misbehaves => Renewal::Forgotten,
            1 => Renewal::LastSecond,
            _ => Renewal::InTime,
        };
        Self { says_started: rng.chance(700), work, renewal, act }
    }
}

/// How long until the next renewal.
pub(crate) fn renewal_wait(world: &mut World, renewal: Renewal, claim: &Claim) -> i64 {
    let left = claim.lease_expires_at.micros() - world.store_time().micros();
    match renewal {
        Renewal::InTime => {
            let due = world.setting.lease.renew_at(world.store_time());
            due.micros() - world.store_time().micros()
        }
        Renewal::LastSecond => (left - world.rng.within(SECOND / 2, SECOND)).max(SECOND / 10),
        Renewal::Forgotten => i64::MAX,
    }
}

/// What an executor or a peer answers to a cancel.
pub fn cancel_answer(rng: &mut Rng) -> CancelAnswer {
    match rng.below(4) {
        0 | 1 => CancelAnswer::Cancelled,
        2 => CancelAnswer::Accepted,
        _ if rng.chance(500) => CancelAnswer::Unreachable,
        _ => CancelAnswer::Refused("too late".to_owned()),
    }
}
