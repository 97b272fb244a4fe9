//! The one source of chance: xoshiro256++, seeded by splitmix64. The same seed draws the same run.

/// A seeded generator.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    /// The generator of this seed.
    pub fn seeded(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| splitmix(&mut state)))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        let drawn = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let [c, d] = [c ^ a, d ^ b];
        self.0 = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        drawn
    }

    /// A number from 0 to below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        let scaled = (u128::from(self.bits()) * u128::from(end)) >> 64;
        u64::try_from(scaled).expect("a share of a u64 fits one")
    }

    /// A number within these bounds, both included.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        let span = u64::try_from(high - low).expect("bounds are in order");
        low + i64::try_from(self.below(span + 1)).expect("a number below a positive i64 fits")
    }

    /// A number within these bounds, both included.
    pub fn count(&mut self, low: u32, high: u32) -> u32 {
        u32::try_from(self.within(i64::from(low), i64::from(high))).expect("bounds are of this type")
    }

    /// An index into something of this length, which is not 0.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("an index fits")
    }

    /// Whether something of this many parts in a thousand happens.
    pub fn chance(&mut self, permille: u32) -> bool {
        permille > 0 && self.below(1_000) < u64::from(permille)
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
