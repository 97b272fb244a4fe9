//! Holds `docs/reliability.md` against the sources: what it names must be there, and what is there must be on it.
//! Does not judge whether a test holds its promise, nor whether a figure is true; that is for whoever reads and runs them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tidy::{TEST_ATTRIBUTES, rust_files, test_below};

use domain::planted::Bug;

/// How many promises there are of each letter.
const PROMISES: [(&str, u32); 3] = [("", 9), ("P", 41), ("S", 13)];
/// A word with fewer underscores than this may be anything, one with as many is a test.
const UNDERSCORES_OF_A_TEST: usize = 2;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/reliability.md")).expect("the page is there")
}

/// What stands between backticks.
fn marked(page: &str) -> BTreeSet<&str> {
    page.split('`').skip(1).step_by(2).collect()
}

fn is_test_name(word: &str) -> bool {
    word.matches('_').count() >= UNDERSCORES_OF_A_TEST
        && word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

fn is_bug_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && word.contains(|letter: char| letter.is_ascii_lowercase())
        && word.chars().all(|letter| letter.is_ascii_alphabetic())
}

fn tests() -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    for file in rust_files(&root()) {
        let source = fs::read_to_string(root().join(file)).expect("sources are readable");
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        let begins = |line: &str| TEST_ATTRIBUTES.iter().any(|attribute| line.starts_with(attribute));
        let found =
            (0..lines.len()).filter(|at| begins(lines[*at])).filter_map(|at| test_below(&lines[at..]));
        tests.extend(found.map(str::to_owned));
    }
    tests
}

#[test]
fn every_test_that_the_page_names_is_in_the_sources() {
    let (page, tests) = (page(), tests());
    let named: Vec<&str> = marked(&page).into_iter().filter(|word| is_test_name(word)).collect();
    assert!(named.len() > 100, "{} tests are named, the page is not read right", named.len());
    let gone: Vec<&&str> = named.iter().filter(|name| !tests.contains(**name)).collect();
    assert!(gone.is_empty(), "docs/reliability.md names tests that are not there: {gone:#?}");
}

#[test]
fn every_promise_has_one_line() {
    let page = page();
    for (letter, count) in PROMISES {
        for number in 1..=count {
            let cell = format!("| {letter}{number} |");
            let lines = page.lines().filter(|line| line.starts_with(&cell)).count();
            assert_eq!(lines, 1, "lines of docs/reliability.md that begin with {cell:?}");
        }
    }
}

#[test]
fn every_planted_bug_is_on_the_page_and_no_other() {
    let page = page();
    let planted: BTreeSet<String> = Bug::ALL.iter().map(|bug| format!("{bug:?}")).collect();
    let named: BTreeSet<String> =
        marked(&page).into_iter().filter(|word| is_bug_name(word)).map(str::to_owned).collect();
    assert_eq!(named, planted);
}

/// The sizes that `scripts/test` sets, as the page tells them: `| knob | commit | nightly | release | what |`.
#[test]
fn every_size_of_the_gates_is_told_as_the_script_has_it() {
    let page = page();
    let script = fs::read_to_string(root().join("scripts/test")).expect("the script is there");
    let (_, table) = script.split_once("\nsizes='\n").expect("the script has its table");
    let (table, _) = table.split_once("\n'\n").expect("the table ends");
    assert!(table.lines().count() > 10, "the table is not read right");
    for line in table.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [knob, nightly, release] = words[..] else { panic!("{line:?} is no knob with two sizes") };
        let told = page.lines().find(|line| line.starts_with(&format!("| `{knob}` |")));
        let told = told.unwrap_or_else(|| panic!("docs/reliability.md does not tell of {knob}"));
        let cells: Vec<String> = told.split('|').map(|cell| cell.trim().replace(',', "")).collect();
        assert_eq!((cells[3].as_str(), cells[4].as_str()), (nightly, release), "{told}");
        assert!(script.contains(&format!("#   {knob}")) || script.contains(&format!(", {knob}  ")), "{knob}");
    }
}
