//! The same random templates, rendered here, by the published Rust crate and, where it is installed, by the
//! published Python package: whoever gives a result gives the same one, and errors are errors everywhere.
//!
//! Known differences are excluded by name: for the crate in `sample`, which does not make what it answers
//! otherwise; for Python in `oracle.py`, which tells which of them a render came across.
//! `LONGHAUL_CASES` says how many, `JSONE_PYTHON` which Python. Without the package the tests against it say
//! SKIPPED on standard error and pass; with `JSONE_PYTHON_REQUIRED` set they fail.

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
use std::process::Command;

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
            _ => match crate_difference(&ours, theirs.as_ref().ok(), &format!("{theirs:?}")) {
                Some(difference) => tally.excluded(&format!("{difference:?}")),
                None => tally.differs(seed, &sample, &ours, &format!("{theirs:?}")),
            },
        }
    }
    tally.conclude("crate");
}

#[test]
fn the_published_python_package_gives_the_same_answers_and_messages() {
    let Some(mut python) = python() else { return };
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

// Python's integers have any size and its division of them is exact until it rounds once: where the exact result
// has 64 bits, or is a double, there is one right answer.
#[test]
fn integers_around_53_63_and_64_bits_are_computed_as_python_does() {
    let Some(mut python) = python() else { return };
    let mut integers: Vec<i128> = vec![0, 1, 2, 3, 7];
    for power in [53, 63, 64] {
        integers.extend((-1..=3).step_by(2).map(|near| 2_i128.pow(power) + near));
    }
    integers.extend(integers.clone().iter().map(|integer| -integer));
    integers.retain(|integer| (i64::MIN.into()..=u64::MAX.into()).contains(integer));
    let operands: Vec<String> = integers.iter().map(ToString::to_string).collect();
    let mut wrong = Vec::new();
    for left in &operands {
        // One render for a row: negative zero does not exist here, and a division by zero would fail them all.
        let computed = operands.iter().filter(|right| *right != "0").flat_map(|right| {
            ["+", "-", "*", "/", "<", "=="].map(|symbol| format!("({left}) {symbol} ({right})"))
        });
        let computed: Vec<String> = computed.collect();
        let template = serde_json::json!({"$eval": format!("[{}]", computed.join(", "))});
        let ours = render(&template, &serde_json::json!({})).expect("it renders");
        let (Answer::Result(theirs), _) = python.render(&template, &with_now(&serde_json::json!({}))) else {
            panic!("Python renders it");
        };
        let pairs = ours.as_array().expect("an array").iter().zip(theirs.as_array().expect("an array"));
        let different = computed.iter().zip(pairs).filter(|(_, (ours, theirs))| !same(ours, theirs));
        wrong.extend(
            different.map(|(expression, (ours, theirs))| format!("{expression}: {ours}, not {theirs}")),
        );
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

/// `None` when the package is missing and may be.
fn python() -> Option<Python> {
    let python = Python::start();
    if python.is_none() {
        let missing = "no Python with the package json-e 4.8.4; see README.md, or set JSONE_PYTHON";
        assert!(
            std::env::var_os("JSONE_PYTHON_REQUIRED").is_none(),
            "JSONE_PYTHON_REQUIRED is set, but {missing}"
        );
        eprintln!(
            "SKIPPED, nothing was compared with Python: {missing}; JSONE_PYTHON_REQUIRED=1 makes this fail"
        );
    }
    python
}

#[test]
fn a_missing_python_package_is_told_and_fails_the_test_where_it_is_required() {
    let run = |required: bool| {
        let mut test = Command::new(std::env::current_exe().expect("this test"));
        test.args([
            "--exact",
            "the_published_python_package_gives_the_same_answers_and_messages",
            "--nocapture",
        ]);
        test.env("JSONE_PYTHON", "/nowhere/python").env_remove("JSONE_PYTHON_REQUIRED");
        if required {
            test.env("JSONE_PYTHON_REQUIRED", "1");
        }
        let output = test.output().expect("it runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (passed, said) = run(false);
    assert!(passed && said.contains("SKIPPED, nothing was compared with Python"), "{said}");
    let (passed, said) = run(true);
    assert!(!passed && said.contains("JSONE_PYTHON_REQUIRED is set, but no Python"), "{said}");
}

/// Python takes its `now` from the context.
fn with_now(context: &Json) -> Json {
    let mut context = context.clone();
    context["now"] = NOW.into();
    context
}

fn crate_difference(
    ours: &Result<Json, Error>,
    result: Option<&Json>,
    theirs: &str,
) -> Option<CrateDifference> {
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
    let only_rounded = digits >= Some(16) && result.is_some_and(|theirs| alike(ours, theirs));
    only_rounded.then_some(CrateDifference::IntegerAboveTwoToThe53)
}

/// Whether nothing but the last digits of numbers differs.
fn alike(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => {
            let (left, right) = (left.as_f64().unwrap_or(0.0), right.as_f64().unwrap_or(0.0));
            (left - right).abs() <= left.abs() * f64::EPSILON
        }
        (Json::String(left), Json::String(right)) => left
            .split(|digit: char| digit.is_ascii_digit())
            .filter(|part| !part.is_empty())
            .eq(right.split(|digit: char| digit.is_ascii_digit()).filter(|part| !part.is_empty())),
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| alike(left, right))
        }
        (Json::Object(left), Json::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| alike(left, right)))
        }
        _ => left == right,
    }
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
