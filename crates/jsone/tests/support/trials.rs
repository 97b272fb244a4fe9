//! Trying a property over random bytes: the same bytes in every run, as many as `LONGHAUL_CASES` says, shrunk
//! when the property fails.

#![allow(dead_code)]

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Longest sample, in bytes of choices.
const BYTES: usize = 240;

pub fn cases(default: u32) -> u32 {
    match std::env::var("LONGHAUL_CASES") {
        Ok(cases) => cases.parse().expect("LONGHAUL_CASES is a number"),
        Err(_) => default,
    }
}

pub fn try_all(default: u32, property: impl Fn(&[u8]) -> Result<(), TestCaseError>) {
    let config = Config { cases: cases(default), failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let bytes = vec(any::<u8>(), 0..BYTES);
    if let Err(failure) = TestRunner::new_with_rng(config, random).run(&bytes, |bytes| property(&bytes)) {
        panic!("{failure}");
    }
}
