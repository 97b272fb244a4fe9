//! Random templates and contexts, made from bytes: the same bytes give the same sample, and fewer bytes give a
//! smaller one. Property tests, the differential tests and the fuzz target all draw from here.

#![allow(dead_code)]

#[path = "sample/expressions.rs"]
mod expressions;
#[path = "sample/templates.rs"]
mod templates;
#[path = "sample/values.rs"]
mod values;

use serde_json::Value as Json;

/// A template and what to render it with.
#[derive(Debug)]
pub struct Sample {
    pub template: Json,
    pub context: Json,
}

/// What a kind of sample may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Everything, mistakes of all kinds included.
    Wild,
    /// Nothing that the published crate is known to answer otherwise.
    AgainstCrate,
    /// Nothing that makes the Python package run forever. What it answers otherwise it reports itself.
    AgainstPython,
}

pub fn sample(bytes: &[u8], flavour: Flavour) -> Sample {
    let mut source = Source { bytes, position: 0, flavour, in_find: false };
    let context = source.context();
    let template = source.template(4);
    Sample { template, context }
}

/// Bytes as a stream of choices; after the last byte every choice is the first, which is always a small one.
struct Source<'b> {
    bytes: &'b [u8],
    position: usize,
    flavour: Flavour,
    /// Whether the value is drawn for `$find`, whose result the other implementations render once more.
    in_find: bool,
}

impl Source<'_> {
    fn below(&mut self, count: usize) -> usize {
        let byte = self.bytes.get(self.position).copied().unwrap_or(0);
        self.position += 1;
        usize::from(byte) % count
    }

    fn one_of<'t>(&mut self, choices: &[&'t str]) -> &'t str {
        choices[self.below(choices.len())]
    }

    /// True once in `times`.
    fn rarely(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    fn is_wild(&self) -> bool {
        self.flavour == Flavour::Wild
    }
}

/// Pseudo-random bytes from a seed: a splitmix64 stream, the same on every machine.
pub fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend((mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// A seed's bytes: mostly short, sometimes long.
pub fn bytes_of(seed: u64) -> Vec<u8> {
    let length = random_bytes(seed, 1)[0];
    random_bytes(seed.wrapping_mul(31).wrapping_add(7), 8 + usize::from(length))
}
