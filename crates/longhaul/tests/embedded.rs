//! The engine as a library: the example runs, is killed with -9 while its work is outside, and goes on where it was.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The example is built beside the binary.
fn example() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_longhaul"));
    binary.parent().expect("it is in a directory").join("examples/embedded")
}

/// Runs it until it says that the job is in this state, and gives its id.
fn until(dir: &Path, state: &str) -> (Child, String) {
    let mut child =
        Command::new(example()).arg(dir).stdout(Stdio::piped()).spawn().expect("the example was built");
    let said = BufReader::new(child.stdout.take().expect("it is ours"));
    let line = said.lines().map(|line| line.expect("it is text")).find(|line| line.ends_with(state));
    let line = line.unwrap_or_else(|| panic!("it never was {state}"));
    (child, line.split(' ').next().expect("it begins with the id").to_owned())
}

#[test]
fn killed_example_goes_on_where_it_was_and_prints_once() {
    let dir = tempfile::tempdir().unwrap();
    let (mut first, id) = until(dir.path(), "awaiting_external");
    first.kill().unwrap();
    first.wait().unwrap();
    let (mut second, same) = until(dir.path(), "completed");
    assert!(second.wait().unwrap().success());
    assert_eq!(same, id);
    let prints = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(prints.filter(|path| path.extension().is_some_and(|ending| ending == "print")).count(), 1);
}
