//! Places in the ledger as callers see them.
//!
//! Positions count the facts of all circles: whoever is bound to one would see from the gaps how much happens in the others. Such a
//! caller is told each place under a number of its own, made by a keyed permutation: it names the same fact every time, can be
//! given back as a cursor, and says nothing about order or distance. Callers who see every circle are told positions as they are.

use crate::access::{Principal, authorise};
use crate::external::callback::CallbackKey;
use crate::server::Server;

/// What the permutation is for: a key for another purpose is another permutation.
const PURPOSE: &[u8] = b"longhaul ledger place 1";
/// Numbers from here on are permuted ones; all are below 2^53, which every reader of JSON keeps exactly.
const PERMUTED: u64 = 1 << (2 * HALF_BITS);
/// Bits of each half.
const HALF_BITS: u32 = 26;
const HALF: u64 = (1 << HALF_BITS) - 1;
const ROUNDS: u8 = 6;
/// To a caller that is bound to a circle, a plain position (a cursor of an older version) counts only to such a multiple before it:
/// some facts come again, and trying numbers out tells nothing finer.
const PLAIN_STEP: u64 = 1_024;

/// The number under which this caller is told a position.
pub(crate) fn shown(server: &Server, principal: &Principal, position: u64) -> u64 {
    match &server.callbacks {
        Some(key) if !authorise::sees_every_circle(principal) && position < PERMUTED => {
            permute(key, position)
        }
        Some(_) | None => position,
    }
}

/// The position that a number of this caller means.
pub(super) fn meant(server: &Server, principal: &Principal, number: u64) -> u64 {
    match &server.callbacks {
        Some(key) if (PERMUTED..2 * PERMUTED).contains(&number) => restore(key, number),
        Some(_) if !authorise::sees_every_circle(principal) => number - number % PLAIN_STEP,
        Some(_) | None => number,
    }
}

fn permute(key: &CallbackKey, position: u64) -> u64 {
    let (mut left, mut right) = (position >> HALF_BITS, position & HALF);
    for round in 0..ROUNDS {
        (left, right) = (right, left ^ scrambled(key, round, right));
    }
    PERMUTED | (left << HALF_BITS) | right
}

fn restore(key: &CallbackKey, number: u64) -> u64 {
    let number = number & !PERMUTED;
    let (mut left, mut right) = (number >> HALF_BITS, number & HALF);
    for round in (0..ROUNDS).rev() {
        (left, right) = (right ^ scrambled(key, round, left), left);
    }
    (left << HALF_BITS) | right
}

fn scrambled(key: &CallbackKey, round: u8, half: u64) -> u64 {
    let mac = key.mac_of(&[PURPOSE, &[round], &half.to_be_bytes()].concat());
    mac.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte)) & HALF
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn permuted_place_is_read_back_and_tells_no_distance() {
        let key = CallbackKey::from_bytes([7; 32]);
        let places = [0, 1, 2, 3, 1_000, 1 << 40, PERMUTED - 1];
        let numbers: Vec<u64> = places.iter().map(|place| permute(&key, *place)).collect();
        for (place, number) in places.iter().zip(&numbers) {
            assert_eq!(restore(&key, *number), *place);
            assert!((PERMUTED..2 * PERMUTED).contains(number), "{number}");
        }
        let steps: BTreeSet<u64> = numbers.windows(2).map(|pair| pair[0].abs_diff(pair[1])).collect();
        assert!(steps.len() == places.len() - 1 && steps.iter().all(|step| *step > HALF), "{steps:?}");
        assert_ne!(permute(&CallbackKey::from_bytes([8; 32]), 1), numbers[1]);
    }
}
