//! Chance that is the same for the same seed.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::Ids;

/// Splitmix64.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("less than a usize")
    }

    /// So many times in a hundred.
    pub fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// Ids that both sides are given alike.
pub struct SeededIds(AtomicU64);

impl SeededIds {
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed << 32))
    }
}

impl Ids for SeededIds {
    fn next(&self) -> u128 {
        let given = self.0.fetch_add(1, Ordering::Relaxed);
        u128::from(given) << 64 | u128::from(mix(given))
    }
}

fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
