//! What a power loss does to each operation: durable ones are kept, the seed decides about the others.
//!
//! The rules of durability are those of Linux. A sync settles the earlier writes and truncations of its
//! file. A failed sync settles nothing, and no later sync makes up for it. A directory sync settles the
//! earlier creations and deletions of every file.

use std::collections::BTreeMap;

use crate::log::Operation;
use crate::storage::FileId;

/// A write reaches the disk in units of this.
pub(crate) const SECTOR_BYTES: usize = 512;

/// One of these is how many in eight of the unsettled operations survive, drawn anew for each image: with
/// an even chance alone, an image that lacks only one write of many would hardly ever come.
const SURVIVORS_IN_EIGHT: [u64; 3] = [1, 4, 7];

/// What becomes of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Dropped,
    /// Only the first bytes of the write, up to a sector boundary.
    Torn {
        kept_bytes: usize,
    },
}

/// One power loss after some operations.
pub(crate) struct PowerLoss<'a> {
    operations: &'a [Operation],
    settled: Vec<bool>,
    dice: SplitMix64,
    survivors_in_eight: u64,
}

impl<'a> PowerLoss<'a> {
    pub(crate) fn new(operations: &'a [Operation], seed: u64) -> Self {
        // Mixed with the moment: the same seed one operation later should lose other things.
        let mut moment = SplitMix64(operations.len() as u64);
        let mut dice = SplitMix64(seed ^ moment.next());
        let survivors_in_eight = SURVIVORS_IN_EIGHT[dice.below(SURVIVORS_IN_EIGHT.len())];
        Self { operations, settled: settled(operations), dice, survivors_in_eight }
    }

    /// The fate of the operation; to be asked once for each, in order.
    pub(crate) fn fate(&mut self, index: usize) -> Fate {
        if self.settled[index] || self.dice.next() % 8 < self.survivors_in_eight {
            return Fate::Kept;
        }
        let Operation::Write { offset, bytes, .. } = &self.operations[index] else {
            return Fate::Dropped;
        };
        let to_first_boundary = SECTOR_BYTES - offset % SECTOR_BYTES;
        let boundaries_inside = bytes.len().saturating_sub(to_first_boundary).div_ceil(SECTOR_BYTES);
        if boundaries_inside == 0 || self.dice.next().is_multiple_of(2) {
            return Fate::Dropped;
        }
        Fate::Torn { kept_bytes: to_first_boundary + self.dice.below(boundaries_inside) * SECTOR_BYTES }
    }
}

/// For each operation whether the disk had promised to keep it by the end.
pub(crate) fn settled(operations: &[Operation]) -> Vec<bool> {
    // Walked backwards: the next sync after a write, failed or not, decides about it.
    let mut file_settled: BTreeMap<FileId, bool> = BTreeMap::new();
    let mut directory_settled = false;
    let mut settled: Vec<bool> = operations
        .iter()
        .rev()
        .map(|operation| match operation {
            Operation::Write { file, .. } | Operation::Truncate { file, .. } => {
                file_settled.get(file).copied().unwrap_or(false)
            }
            Operation::Create { .. } | Operation::Delete { .. } => directory_settled,
            Operation::Sync { file } => {
                file_settled.insert(*file, true);
                true
            }
            Operation::FailedSync { file } => {
                file_settled.insert(*file, false);
                true
            }
            Operation::SyncDirectory => {
                directory_settled = true;
                true
            }
        })
        .collect();
    settled.reverse();
    settled
}

/// Steele, Lea and Flood's generator: small, and good from any seed, also from 0, 1, 2.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("a remainder of a usize fits")
    }
}

#[cfg(test)]
mod tests;
