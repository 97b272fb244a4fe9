//! The scene of one run: how many nodes, how long leases are, what the host grants, how much work there is.

use std::num::NonZeroU64;

use domain::Lease;
use domain::attention::Retention;
use domain::checkpoint::CHECKPOINT_AFTER;
use domain::policy::{CancelPolicy, HostPolicy, KindOverride, KindPolicy, TimedOutPolicy, UnknownPolicy};

use crate::heap::SECOND;
use crate::rng::Rng;
use crate::routed::STEPS_IN_A_ROW;

/// The most attempts that a job of a run asks for.
pub const MAX_ATTEMPTS: u32 = 4;
/// The longest wait between attempts, in seconds.
pub const MAX_BACKOFF_SECONDS: u32 = 30;

/// What stays as it is during a run.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Nodes on the store.
    pub nodes: usize,
    /// The lease of everybody.
    pub lease: Lease,
    /// Its length in microseconds.
    pub lease_micros: i64,
    /// How long records are kept.
    pub retention: Retention,
    /// What the host grants to operations.
    pub host: HostPolicy,
    /// Jobs that the clients create.
    pub jobs: u32,
    /// Peers that pull.
    pub peers: u32,
    /// The most that an ordinary store call takes one way.
    pub latency: i64,
    /// How long a worker that found nothing sleeps at most.
    pub idle: i64,
    /// When faults end.
    pub calm_at: i64,
    /// Who does by itself what is to be done.
    pub workers: WhoseWorkers,
    /// Events that are published; without any there are no pipelines.
    pub events: u32,
    /// Consequences that routing adds to one commit; what is over it waits.
    pub following: usize,
    /// After how many facts an open record writes a checkpoint.
    pub checkpoint_after: NonZeroU64,
}

/// Who does by itself what is to be done on the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhoseWorkers {
    /// Scripted ones, which do more that is wrong, and follow work outside.
    Scripted,
    /// The engine's own.
    Engine,
}

impl Setting {
    /// The scene of one seed.
    pub fn draw(rng: &mut Rng) -> Self {
        let lease_seconds = rng.count(30, 60);
        let lease = Lease::new(lease_seconds, rng.count(5, 15)).expect("the bounds are the domain's");
        let retention = if rng.chance(300) {
            let seconds = rng.below(500) + 400;
            Retention { completed_seconds: seconds, other_seconds: seconds + rng.below(300) }
        } else {
            Retention::DEFAULT
        };
        let workers = rng.pick(&[WhoseWorkers::Scripted, WhoseWorkers::Engine]);
        let alone = workers == WhoseWorkers::Engine && rng.chance(500);
        let events = if rng.chance(450) { rng.count(1, 5) } else { 0 };
        Self {
            nodes: if alone { 1 } else { rng.index(4) + 2 },
            lease,
            lease_micros: i64::from(lease_seconds) * SECOND,
            retention,
            host: HostPolicy { defaults: policy(rng), ..HostPolicy::default() },
            jobs: if events == 0 { rng.count(20, 60) } else { rng.count(5, 30) },
            peers: rng.count(1, 3),
            latency: rng.pick(&[10_000, 150_000, 1_000_000]),
            idle: rng.within(4, 12) * SECOND,
            calm_at: rng.within(150, 450) * SECOND,
            workers,
            events,
            following: rng.pick(&[0, 1, 3, 100]),
            checkpoint_after: CHECKPOINT_AFTER,
        }
    }

    /// In some seeds records write checkpoints after a few facts. Drawn by itself, so that the other seeds run as they do without.
    pub fn draw_checkpoints(&mut self, rng: &mut Rng) {
        if rng.chance(300) {
            self.checkpoint_after = NonZeroU64::new(3 + rng.below(6)).expect("that is not zero");
        }
    }

    /// Whether steps emit very many events: then a node must read many records within a lease.
    pub fn floods(&self) -> bool {
        self.following < 100 && self.latency < SECOND
    }

    /// Whether the store lives and dies with its only node, as an embedded one does: nothing is under way afterwards.
    pub fn is_in_process(&self) -> bool {
        self.nodes == 1
    }

    /// What the host grants to work outside.
    pub fn policy(&self) -> KindPolicy {
        self.host.for_all()
    }

    /// How long after the calm everything accepted must be over.
    pub fn horizon(&self) -> i64 {
        let attempt = 3 * self.lease_micros + i64::from(MAX_BACKOFF_SECONDS) * SECOND + 60 * SECOND;
        let life = i64::try_from(self.policy().max_ttl_seconds).expect("a drawn life is short") * SECOND;
        let one = i64::from(MAX_ATTEMPTS) * attempt + life + 3 * crate::faults::MAX_SLOW;
        // The steps of a pipeline come one after the other.
        if self.events == 0 { one } else { one * (1 + STEPS_IN_A_ROW) }
    }
}

fn policy(rng: &mut Rng) -> KindOverride {
    let min = rng.count(1, 5);
    let max = min + rng.count(5, 40);
    KindOverride {
        min_retry_after_seconds: Some(min),
        max_retry_after_seconds: Some(max),
        default_retry_after_seconds: Some(rng.count(min, max)),
        max_ttl_seconds: Some(30 + rng.below(300)),
        max_attempts: Some(rng.count(3, 40)),
        unknown_policy: Some(rng.pick(&[UnknownPolicy::Terminal, UnknownPolicy::RetryUntilExpiry])),
        cancel_policy: Some(rng.pick(&[CancelPolicy::Provider, CancelPolicy::Provider, CancelPolicy::Deny])),
        max_poll_error_backoff_seconds: Some(rng.count(5, 30)),
        // Every seed submits again what ran out of its own time: the longer way.
        timed_out_policy: Some(TimedOutPolicy::Resubmit),
        diagnostics_max_items: Some(8),
        ..KindOverride::default()
    }
}
