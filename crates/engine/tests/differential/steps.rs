//! What happens next: an order, something about claims, or time.

use domain::{Command, Fence, Lease, OwnerId, RecordId, RecordKind, Timestamp};
use engine::Order;
use store::{Lane, Take, Taken};

use crate::chance::Chance;
use crate::orders::{self, LANES};
use crate::twins::{Answer, Twins};

#[derive(Clone, Debug)]
pub enum Step {
    Wait(u32),
    Order(Box<Order>),
    /// Attends to what was taken, now or long ago.
    Attend(Taken),
    TakeDue(RecordKind, Taking),
    TakeReady(Lane<'static>, Taking),
    Take(RecordId, Taking),
    Renew(RecordId, Fence),
    HandBack(RecordId, Fence, Timestamp),
}

/// Who takes, and how many.
#[derive(Clone, Debug)]
pub struct Taking {
    owner: OwnerId,
    limit: usize,
}

impl Taking {
    pub fn at(&self, now: Timestamp) -> Take {
        Take::by(self.owner.clone(), now, Lease::DEFAULT, self.limit)
    }
}

/// The steps of one history, and what they have learned so far.
pub struct Steps {
    chance: Chance,
    /// Claims that were given, the newest last.
    taken: Vec<Taken>,
}

fn needs_claim(order: &Order) -> bool {
    matches!(&order.command, Command::Job(command) if command.needs_claim())
}

/// Around the ends of leases, backoffs, cancels, lives and retentions.
const WAITS: [u32; 11] = [0, 1, 2, 5, 20, 29, 30, 60, 61, 900, 8 * 86_400];

/// None, full at once, soon full, never full.
const LIMITS: [Option<usize>; 4] = [None, Some(0), Some(2), Some(1_000)];

impl Steps {
    pub fn new(seed: u64) -> Self {
        Self { chance: Chance::new(seed), taken: Vec::new() }
    }

    pub async fn next(&mut self, twins: &Twins) -> Step {
        match self.chance.below(100) {
            0..=9 => Step::Wait(self.chance.pick(&WAITS)),
            10..=15 => Step::TakeDue(self.chance.pick(&RecordKind::ALL), self.taking()),
            16..=21 => {
                let lane = Lane { name: self.chance.pick(&LANES), limit: self.chance.pick(&LIMITS) };
                Step::TakeReady(lane, self.taking())
            }
            22..=24 => Step::Take(self.chance.pick(&orders::every_id()), self.taking()),
            25..=35 if !self.taken.is_empty() => {
                let taken = self.any_taken();
                match self.chance.below(4) {
                    0 => Step::Renew(taken.id, taken.claim.fence()),
                    1 => {
                        // What was changed at this very time may have been released by that change: nothing tells the two apart.
                        let changed_now = twins.changed_at(&taken.id).await == Some(twins.now());
                        let wait = if changed_now { 0 } else { self.chance.pick(&WAITS) };
                        let due_at = twins.now().plus_seconds(u64::from(wait));
                        Step::HandBack(taken.id, taken.claim.fence(), due_at)
                    }
                    _ => Step::Attend(taken),
                }
            }
            _ => {
                let mut order = orders::next(&mut self.chance, twins.model(), twins.now()).await;
                let held = self.taken.iter().rfind(|taken| taken.id == order.record).cloned();
                if let (true, Some(held)) = (needs_claim(&order) && self.chance.percent(90), held) {
                    order = order.under(held.claim.fence());
                } else if self.chance.percent(25) && !self.taken.is_empty() {
                    let taken = self.any_taken();
                    // Mostly the right record; the claim may be lost all the same.
                    if taken.id == order.record || self.chance.percent(10) {
                        order = order.under(taken.claim.fence());
                    }
                }
                Step::Order(Box::new(order))
            }
        }
    }

    /// Remembers the claims that were given.
    pub fn heard(&mut self, answer: Answer) {
        if let Answer::Taken(taken) = answer {
            self.taken.extend(taken);
        }
    }

    fn taking(&mut self) -> Taking {
        let owner = OwnerId::new(self.chance.pick(&["node-a", "node-b", "node-c"]));
        Taking { owner, limit: self.chance.pick(&[0, 1, 2, 10]) }
    }

    fn any_taken(&mut self) -> Taken {
        let recent = self.taken.len().saturating_sub(4);
        let from = if self.chance.percent(80) { recent } else { 0 };
        self.chance.pick(&self.taken[from..])
    }
}
