//! The same random templates, rendered here, by the published Rust crate and, where it is installed, by the
//! published Python package: whoever gives a result gives the same one, and errors are errors everywhere.
//!
//! Known differences are excluded by name: for the crate in `sample`, which does not make what it answers
//! otherwise; for Python in `oracle.py`, which tells which of them a render came across.
//! `LONGHAUL_CASES` says how many, `JSONE_PYTHON` which Python.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

#[path = "support/python.rs"]
mod python;
#[path = "support/rendering.rs"]
mod rendering;
#[path = "support/same.rs"]
mod same;
#[path = "support/sample.rs"]
mod sample;
#[path = "support/trials.rs"]
mod trials;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jsone::Error;
use python::{Answer, Python};
use rendering::{NOW, render};
use same::same;
use sample::{Flavour, Sample, bytes_of};
use serde_json::Value as Json;
use trials::cases;

const DEFAULT_CASES: u32 = 10_000;

/// Answers of the crate that differ by what a render came across, not by how the template was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CrateDifference {
    /// It writes all digits where ECMAScript writes an exponent.
    ExponentInText,
    /// It computes in doubles only.
    IntegerAboveTwoToThe53,
    /// It writes a zero with its sign.
    NegativeZeroInText,
    /// It refuses a deletion marker where `$map` goes through an object.
    VanishingEntryOfMappedObject,
}

#[test]
fn the_published_crate_gives_the_same_answers() {
    json_e::use_test_now();
    let mut tally = Tally::default();
    for seed in 0..u64::from(cases(DEFAULT_CASES)) {
        let sample = sample::sample(&bytes_of(seed), Flavour::AgainstCrate);
        let ours = render(&sample.template, &sample.context);
        let theirs = catch_unwind(AssertUnwindSafe(|| json_e::render(&sample.template, &sample.context)));
        let Ok(theirs) = theirs else {
            tally.excluded("the crate panics");
            continue;
        };
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) if same(ours, theirs) => tally.results += 1,
            (Err(_), Err(_)) => tally.errors += 1,
            _ => match crate_difference(&ours, &format!("{theirs:?}")) {
                Some(difference) => tally.excluded(&format!("{difference:?}")),
                None => tally.differs(seed, &sample, &ours, &format!("{theirs:?}")),
            },
        }
    }
    tally.conclude("crate");
}

#[test]
fn the_published_python_package_gives_the_same_answers_and_messages() {
    let Some(mut python) = Python::start() else {
        eprintln!("SKIPPED: no Python with the package json-e 4.8.4; see README.md, or set JSONE_PYTHON");
        return;
    };
    let mut tally = Tally::default();
    for seed in 0..u64::from(cases(DEFAULT_CASES)) {
        let sample = sample::sample(&bytes_of(seed), Flavour::AgainstPython);
        let ours = render(&sample.template, &sample.context);
        let (theirs, quirks) = python.render(&sample.template, &with_now(&sample.context));
        let agreed = match (&ours, &theirs) {
            (Ok(ours), Answer::Result(theirs)) => same(ours, theirs).then_some(true),
            (Err(ours), Answer::Error(theirs)) => (ours.to_string() == *theirs).then_some(false),
            (_, Answer::Crash) => {
                tally.excluded("Python crashes");
                continue;
            }
            (Ok(_), Answer::Error(_)) | (Err(_), Answer::Result(_)) => None,
        };
        match agreed {
            Some(true) => tally.results += 1,
            Some(false) => tally.errors += 1,
            None if quirks.is_empty() => tally.differs(seed, &sample, &ours, &format!("{theirs:?}")),
            None => quirks.iter().for_each(|quirk| tally.excluded(quirk)),
        }
    }
    tally.conclude("Python");
}

/// Python takes its `now` from the context.
fn with_now(context: &Json) -> Json {
    let mut context = context.clone();
    context["now"] = NOW.into();
    context
}

fn crate_difference(ours: &Result<Json, Error>, theirs: &str) -> Option<CrateDifference> {
    let ours = ours.as_ref().ok()?;
    if theirs.contains("$map on objects expects each(..) to evaluate to an object") {
        return Some(CrateDifference::VanishingEntryOfMappedObject);
    }
    let text = ours.to_string();
    if theirs.contains("-0") {
        return Some(CrateDifference::NegativeZeroInText);
    }
    if text.contains("e+") {
        return Some(CrateDifference::ExponentInText);
    }
    let digits = text.split(|character: char| !character.is_ascii_digit()).map(str::len).max();
    (digits >= Some(16)).then_some(CrateDifference::IntegerAboveTwoToThe53)
}

#[derive(Default)]
struct Tally {
    results: u32,
    errors: u32,
    excluded: BTreeMap<String, u32>,
    different: Vec<String>,
}

impl Tally {
    fn excluded(&mut self, name: &str) {
        *self.excluded.entry(name.to_owned()).or_default() += 1;
    }

    fn differs(&mut self, seed: u64, sample: &Sample, ours: &Result<Json, Error>, theirs: &str) {
        let ours = ours.as_ref().map_err(ToString::to_string);
        let Sample { template, context } = sample;
        self.different
            .push(format!("seed {seed}\n  {template}\n  {context}\n  ours   {ours:?}\n  theirs {theirs}"));
    }

    fn conclude(self, oracle: &str) {
        println!(
            "{oracle}: {} same results, {} same errors, excluded {:?}",
            self.results, self.errors, self.excluded
        );
        let shown: Vec<_> = self.different.iter().take(5).cloned().collect();
        assert!(
            self.different.is_empty(),
            "{} differ from {oracle}:\n{}",
            self.different.len(),
            shown.join("\n")
        );
        // Exclusions that swallow everything would prove nothing.
        let excluded: u32 = self.excluded.values().sum();
        assert!(self.results > excluded && self.errors > 0, "too little is compared");
    }
}
