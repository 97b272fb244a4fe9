//! Habits of the sources that no compiler checks: small files, few modules at a crate's root, short names of tests, narrow pages, and
//! crates that use what ARCHITECTURE.md lets them use. A list of exceptions may only become shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use tidy::{files, root, rust_files, test_below};

const MAX_FILE_LINES: usize = 500;
/// Longer files of old.
const LONG_FILES: [&str; 4] = [
    "crates/engine/tests/workers/main.rs",
    "crates/engine/tests/workers/pipelines.rs",
    "crates/longhaul/tests/cli/plugins.rs",
    "crates/store/tests/facts/samples.rs",
];

const MAX_ROOT_MODULES: usize = 20;
/// Roots with more modules.
const CROWDED_ROOTS: [&str; 0] = [];

const MAX_TEST_NAME: usize = 60;
/// Tests of old with longer names. Lower it when you shorten one.
const LONG_TEST_NAMES: usize = 753;

const MAX_PAGE_WIDTH: usize = 120;
/// Pages with wider lines outside of tables and code.
const WIDE_PAGES: [&str; 28] = [
    "CONTRIBUTING.md",
    "README.md",
    "crates/jsone/README.md",
    "docs/backup.md",
    "docs/deferred.md",
    "docs/drill.md",
    "docs/ductile.md",
    "docs/inside/plugins.md",
    "docs/inside/postgresql.md",
    "docs/inside/pulled.md",
    "docs/inside/routing.md",
    "docs/inside/rulings.md",
    "docs/lifecycle.md",
    "docs/operations.md",
    "docs/performance.md",
    "docs/pipelines.md",
    "docs/plugins.md",
    "docs/profiles/README.md",
    "docs/pulled.md",
    "docs/reliability.md",
    "docs/sandbox.md",
    "docs/time.md",
    "examples/connectors/README.md",
    "examples/plugins/README.md",
    "examples/workers/README.md",
    "proof/bench/README.md",
    "proof/bench/peers/README.md",
    "proof/slow-service/README.md",
];

/// What a build must not compile: what is built, and its arguments for cargo.
const LEAN_BUILDS: [(&str, &[&str], &[&str]); 2] = [
    (
        "engine",
        &[],
        &[
            "hyper",
            "hyper-util",
            "jsonschema",
            "landlock",
            "nix",
            "regex",
            "ring",
            "rustls",
            "serde-saphyr",
            "tokio-postgres",
            "tokio-rustls",
        ],
    ),
    (
        "store-sql",
        &["--no-default-features", "--features", "sqlite"],
        &["ring", "rustls", "tokio-postgres", "tokio-rustls"],
    ),
];

#[test]
fn files_are_short() {
    let long = |file: &str| lines_of(file).count() > MAX_FILE_LINES;
    let sources = rust_files(&root());
    let found = sources.iter().filter_map(|file| file.to_str()).filter(|file| long(file));
    assert_exceptions("files over 500 lines: split them", found, &LONG_FILES);
}

#[test]
fn crate_roots_have_at_most_twenty_modules() {
    let crates = crates();
    let crowded = crates.values().filter(|place| {
        let root = format!("{place}/src/lib.rs");
        let main = format!("{place}/src/main.rs");
        let file = if Path::new(&self::root().join(&root)).exists() { root } else { main };
        lines_of(&file).filter(|line| is_module(line)).count() > MAX_ROOT_MODULES
    });
    assert_exceptions("crowded roots: group modules", crowded.map(String::as_str), &CROWDED_ROOTS);
}

#[test]
fn test_names_are_short() {
    let mut long = Vec::new();
    for file in rust_files(&root()) {
        let text = fs::read_to_string(root().join(&file)).expect("sources are readable");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            let is_first = tidy::TEST_ATTRIBUTES.iter().any(|attribute| line.starts_with(attribute));
            let name = test_below(&lines[index..]).filter(|name| is_first && name.len() > MAX_TEST_NAME);
            long.extend(name.map(|name| format!("{}: {name}", file.display())));
        }
    }
    let count = long.len();
    assert!(
        count <= LONG_TEST_NAMES,
        "{count} names of tests are longer than {MAX_TEST_NAME} characters, {LONG_TEST_NAMES} were; shorten yours:\n{}",
        long.join("\n")
    );
}

#[test]
fn pages_are_narrow() {
    let mut pages = files(&root(), ["crates", "docs", "examples", "proof"], "md");
    pages.extend(["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"].map(Into::into));
    let wide = pages.iter().filter_map(|page| page.to_str()).filter(|page| is_wide(page));
    assert_exceptions("pages wider than 120 columns: wrap them", wide, &WIDE_PAGES);
}

#[test]
fn crates_use_what_the_architecture_allows() {
    let allowed = allowed_dependencies();
    let crates = crates();
    for (name, place) in &crates {
        let may = allowed.get(name).unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for {name}"));
        let uses: BTreeSet<String> =
            dependencies(place).into_iter().filter(|used| crates.contains_key(used)).collect();
        let beyond: Vec<&String> = uses.difference(may).collect();
        assert!(beyond.is_empty(), "{name} uses {beyond:?}, which ARCHITECTURE.md does not allow");
    }
}

#[test]
fn lean_builds_compile_no_network() {
    for (package, arguments, unwanted) in LEAN_BUILDS {
        let compiled = compiled(package, arguments);
        for name in unwanted {
            assert!(!compiled.contains(*name), "{package} {arguments:?} compiles {name}");
        }
    }
}

/// Holds what was found against the exceptions, in both directions: what is mended leaves the list.
fn assert_exceptions<'a>(habit: &str, found: impl Iterator<Item = &'a str>, exceptions: &[&str]) {
    let found: BTreeSet<&str> = found.collect();
    let exceptions: BTreeSet<&str> = exceptions.iter().copied().collect();
    let new: Vec<_> = found.difference(&exceptions).collect();
    assert!(new.is_empty(), "{habit}: {new:?}");
    let mended: Vec<_> = exceptions.difference(&found).collect();
    assert!(mended.is_empty(), "{habit}: take these from the list of exceptions: {mended:?}");
}

fn lines_of(file: &str) -> impl Iterator<Item = String> {
    let text = fs::read_to_string(root().join(file)).expect("it is readable");
    text.lines().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

fn is_module(line: &str) -> bool {
    let item = line.strip_prefix("pub").map_or(line, |rest| rest.trim_start_matches("(crate)").trim_start());
    item.starts_with("mod ") && item.ends_with(';')
}

fn is_wide(page: &str) -> bool {
    let mut in_code = false;
    lines_of(page).any(|line| {
        in_code ^= line.trim_start().starts_with("```");
        !in_code && !line.starts_with('|') && line.chars().count() > MAX_PAGE_WIDTH
    })
}

/// The crates of the workspace by name, with their folders.
fn crates() -> BTreeMap<String, String> {
    let manifests = files(&root(), ["crates", "proof"], "toml");
    let ours = manifests.iter().filter(|file| file.ends_with("Cargo.toml") && file.components().count() == 3);
    ours.map(|file| {
        let place = file.parent().and_then(Path::to_str).expect("manifests lie in folders").to_owned();
        let (_, name) = place.split_once('/').expect("crates lie in folders");
        (name.to_owned(), place)
    })
    .collect()
}

/// What a crate is built from, as its manifest says.
fn dependencies(place: &str) -> Vec<String> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in lines_of(&format!("{place}/Cargo.toml")) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]" {
            found.extend(line.split_once(['=', '.']).map(|(name, _)| name.trim().to_owned()));
        }
    }
    found
}

/// The table of ARCHITECTURE.md: for each crate what it may use, with all that these may use.
fn allowed_dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let names =
        |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let mut rows = BTreeMap::new();
    let everything: BTreeSet<String> = crates().into_keys().collect();
    for line in lines_of("ARCHITECTURE.md").filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [crates, .., may] = cells[..] else { panic!("a row has three cells: {line}") };
        let may = if may == "all" { everything.clone() } else { names(may) };
        rows.extend(names(crates).into_iter().map(|name| (name, may.clone())));
    }
    loop {
        let before = rows.clone();
        for may in rows.values_mut() {
            let through: Vec<String> =
                may.iter().filter_map(|name| before.get(name)).flatten().cloned().collect();
            may.extend(through);
        }
        if rows == before {
            return rows;
        }
    }
}

/// The packages that are compiled for this one alone.
fn compiled(package: &str, arguments: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--package", package])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}
