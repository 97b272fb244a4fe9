//! The sources of the workspace, and the tests in them, for tests that hold pages and habits against both. Reads text and understands
//! no Rust. `tests/tidy.rs` is the list of habits.

use std::fs;
use std::path::{Path, PathBuf};

/// What stands above the name of a test.
pub const TEST_ATTRIBUTES: [&str; 3] = ["#[test]", "#[tokio::test]", "#[tokio::test("];

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every source under `crates/` and `proof/`, relative to the root.
pub fn rust_files(root: &Path) -> Vec<PathBuf> {
    files(root, ["crates", "proof"], "rs")
}

/// Every file with this extension under these folders, relative to the root.
pub fn files<const N: usize>(root: &Path, folders: [&str; N], wanted: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = folders.map(PathBuf::from).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).expect("source folders are readable") {
            let entry = entry.expect("source folders are readable");
            let path = folder.join(entry.file_name());
            if entry.file_type().expect("entries have a type").is_dir() {
                if entry.file_name() != "target" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == wanted) {
                files.push(path);
            }
        }
    }
    files
}

/// The name of the test whose comments and attributes these lines begin with, if the next item is one.
pub fn test_below<'a>(below: &[&'a str]) -> Option<&'a str> {
    let mut is_test = false;
    for line in below.iter().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        if !line.starts_with("#[") {
            let (_, from_name) = line.split_once("fn ").filter(|_| is_test)?;
            return from_name.split(['(', '<']).next();
        }
        is_test |= TEST_ATTRIBUTES.iter().any(|attribute| line.starts_with(attribute));
    }
    None
}
