//! The counter behind every budget of a render.
//!
//! Its invariant: a charge is checked before it is booked and before the work is done, so what is used never
//! exceeds what is allowed. It knows numbers only, not what they are spent on.

use crate::error::{Error, Outcome};
use crate::limits::{BYTES_PER_STEP, Budget, Limits};

/// What a render used of its budgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Steps taken.
    pub steps: u64,
    /// Deepest nesting of a value that was built or returned.
    pub depth: usize,
    /// Length of the result as compact JSON, as far as it was written.
    pub output_bytes: usize,
    /// Size of the largest array or object that was built or returned.
    pub collection_size: usize,
    /// Bytes of the longest string that was built or returned.
    pub string_bytes: usize,
}

pub(crate) struct Meter {
    limits: Limits,
    used: Usage,
}

impl Meter {
    pub(crate) fn new(limits: &Limits) -> Meter {
        Meter { limits: *limits, used: Usage::default() }
    }

    pub(crate) fn usage(&self) -> Usage {
        self.used
    }

    pub(crate) fn step(&mut self) -> Outcome<()> {
        self.steps(1)
    }

    pub(crate) fn steps(&mut self, count: u64) -> Outcome<()> {
        match self.used.steps.checked_add(count) {
            Some(steps) if steps <= self.limits.steps => {
                self.used.steps = steps;
                Ok(())
            }
            Some(_) | None => Err(Error::exceeded(Budget::Steps, self.limits.steps)),
        }
    }

    /// Pays for reading or writing that many bytes.
    pub(crate) fn text(&mut self, bytes: usize) -> Outcome<()> {
        self.steps((bytes / BYTES_PER_STEP) as u64)
    }

    /// Pays for reading or writing strings of these lengths, each on its own.
    pub(crate) fn texts(&mut self, lengths: impl Iterator<Item = usize>) -> Outcome<()> {
        self.steps(lengths.map(|bytes| (bytes / BYTES_PER_STEP) as u64).sum())
    }

    /// Pays for finding a key among so many: a comparison for every halving.
    pub(crate) fn search(&mut self, size: usize, key_bytes: usize) -> Outcome<()> {
        self.steps(halvings(size).saturating_mul(comparison(key_bytes)))
    }

    /// Pays for putting what has keys of these lengths into order; a number has no length.
    pub(crate) fn ordering(&mut self, lengths: impl ExactSizeIterator<Item = usize>) -> Outcome<()> {
        let rounds = halvings(lengths.len());
        self.steps(rounds.saturating_mul(lengths.map(comparison).sum()))
    }

    /// Pays for a string that is built or returned.
    pub(crate) fn string(&mut self, bytes: usize) -> Outcome<()> {
        self.longer_string(0, bytes)
    }

    /// Pays for `more` bytes at the end of a string that already has `length`.
    pub(crate) fn longer_string(&mut self, length: usize, more: usize) -> Outcome<()> {
        let total = length.saturating_add(more);
        if total > self.limits.string_bytes {
            return Err(Error::exceeded(Budget::StringBytes, self.limits.string_bytes as u64));
        }
        self.steps((total / BYTES_PER_STEP - length / BYTES_PER_STEP) as u64)?;
        self.used.string_bytes = self.used.string_bytes.max(total);
        Ok(())
    }

    /// Pays for an array or object that is built or returned.
    pub(crate) fn collection(&mut self, size: usize) -> Outcome<()> {
        if size > self.limits.collection_size {
            return Err(Error::exceeded(Budget::CollectionSize, self.limits.collection_size as u64));
        }
        self.steps(size as u64)?;
        self.used.collection_size = self.used.collection_size.max(size);
        Ok(())
    }

    /// Allows a value of that nesting.
    pub(crate) fn depth(&mut self, levels: usize) -> Outcome<()> {
        if levels > self.limits.levels() {
            return Err(Error::exceeded(Budget::Depth, self.limits.levels() as u64));
        }
        self.used.depth = self.used.depth.max(levels);
        Ok(())
    }

    /// Pays for that many more bytes of the result.
    pub(crate) fn output(&mut self, bytes: usize) -> Outcome<()> {
        match self.used.output_bytes.checked_add(bytes) {
            Some(total) if total <= self.limits.output_bytes => {
                self.used.output_bytes = total;
                Ok(())
            }
            Some(_) | None => Err(Error::exceeded(Budget::OutputBytes, self.limits.output_bytes as u64)),
        }
    }

    pub(crate) fn levels(&self) -> usize {
        self.limits.levels()
    }
}

/// How often a size can be halved until nothing is left, at least once.
fn halvings(size: usize) -> u64 {
    u64::from(size.checked_ilog2().unwrap_or(0)) + 1
}

/// The price of comparing a key with another.
fn comparison(key_bytes: usize) -> u64 {
    1 + (key_bytes / BYTES_PER_STEP) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_charge_is_not_booked() {
        let mut meter = Meter::new(&Limits { steps: 10, ..Limits::default() });
        meter.steps(7).unwrap();
        assert_eq!(meter.steps(4).unwrap_err().budget(), Some(Budget::Steps));
        assert_eq!(meter.steps(u64::MAX).unwrap_err().budget(), Some(Budget::Steps));
        assert_eq!(meter.usage().steps, 7);
        meter.steps(3).unwrap();
    }

    #[test]
    fn finding_and_ordering_are_paid_by_the_comparison() {
        let mut meter = Meter::new(&Limits::default());
        meter.search(0, 0).unwrap();
        assert_eq!(meter.usage().steps, 1);
        meter.search(1000, 2 * BYTES_PER_STEP).unwrap();
        assert_eq!(meter.usage().steps, 1 + 10 * 3);
        meter.ordering([0, BYTES_PER_STEP, 5, 5].into_iter()).unwrap();
        assert_eq!(meter.usage().steps, 31 + 3 * 5);
        assert!(meter.search(usize::MAX, usize::MAX).is_err());
    }

    #[test]
    fn no_caller_lifts_the_depth_ceiling() {
        let mut meter = Meter::new(&Limits { depth: usize::MAX, ..Limits::default() });
        meter.depth(crate::DEPTH_CEILING).unwrap();
        assert_eq!(meter.depth(crate::DEPTH_CEILING + 1).unwrap_err().budget(), Some(Budget::Depth));
    }
}
