//! The one source of chance: a seed gives the same draws for ever. Nothing else in this crate draws.

/// `SplitMix64`: small, quick, and the same on every machine.
#[derive(Clone, Debug)]
pub struct Draw(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Draw {
    /// The draws of one part of a drill; another name is another sequence.
    pub fn of(seed: u64, part: &str) -> Self {
        let mut draw = Self(seed);
        for byte in part.bytes() {
            draw.0 = draw.0.wrapping_add(u64::from(byte));
            draw.next();
        }
        draw
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = mixed ^ (mixed >> 31);
        // The state goes on from what was given, so that parts of one seed do not run side by side.
        self.0 ^= mixed.rotate_left(17);
        mixed
    }

    /// From 0 to below `end`; 0 if there is nothing below it.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or_default()
    }

    /// Both ends are possible.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// One of them.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let place = usize::try_from(self.below(of.len() as u64)).unwrap_or_default();
        of.get(place)
    }

    /// One of them, each as often as its weight says.
    pub fn weighted<T: Copy>(&mut self, of: &[(u64, T)]) -> Option<T> {
        let mut left = self.below(of.iter().map(|(weight, _)| weight).sum());
        for (weight, one) in of {
            if left < *weight {
                return Some(*one);
            }
            left -= weight;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_and_part_give_the_same_draws_and_others_give_others() {
        let draws = |seed, part| {
            let mut draw = Draw::of(seed, part);
            (0..100).map(|_| draw.next()).collect::<Vec<_>>()
        };
        assert_eq!(draws(7, "faults"), draws(7, "faults"));
        assert_ne!(draws(7, "faults"), draws(8, "faults"));
        assert_ne!(draws(7, "faults"), draws(7, "client 0"));
    }

    #[test]
    fn weights_are_kept_and_nothing_is_drawn_from_nothing() {
        let mut draw = Draw::of(1, "weights");
        let drawn: Vec<_> =
            (0..1_000).filter_map(|_| draw.weighted(&[(9, 'a'), (1, 'b'), (0, 'c')])).collect();
        let count = |one| drawn.iter().filter(|drawn| **drawn == one).count();
        assert!((850..950).contains(&count('a')) && count('c') == 0, "{}", count('a'));
        assert_eq!(draw.weighted::<char>(&[]), None);
    }
}
