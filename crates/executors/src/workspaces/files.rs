//! The files of a workspace that are for whoever looks at the job: those below `artifacts/` that its attempt made or changed.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::seal::Tree;

/// Where a plugin puts what is to be seen.
const ARTIFACTS: &str = "artifacts";
const CHUNK_BYTES: usize = 65_536;

/// A file that was made or changed.
pub(crate) struct NewFile {
    /// Where it is now.
    pub(crate) path: PathBuf,
    /// Its path below `artifacts/`.
    pub(crate) below: PathBuf,
}

/// Those of a tree at `top`, in the order of their paths; `before` is what it began with. Contents are compared: times say nothing
/// about what happens within one tick.
pub(crate) fn new_files(tree: &Tree, top: &Path, before: Option<&Path>) -> io::Result<Vec<NewFile>> {
    let place = top.join(ARTIFACTS);
    let mut found = Vec::new();
    for path in tree.files() {
        let Ok(below) = path.strip_prefix(&place) else { continue };
        let is_old = match before {
            Some(before) => is_same(path, &before.join(ARTIFACTS).join(below))?,
            None => false,
        };
        if !is_old {
            found.push(NewFile { path: path.clone(), below: below.to_owned() });
        }
    }
    found.sort_by(|a, b| a.below.cmp(&b.below));
    Ok(found)
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let other = match File::open(other) {
        Ok(other) => other,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let one = File::open(one)?;
    let (found, before) = (one.metadata()?, other.metadata()?);
    if !before.is_file() || found.len() != before.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (one.take(found.len()), other.take(found.len()));
    let (mut a, mut b) = (Vec::with_capacity(CHUNK_BYTES), Vec::with_capacity(CHUNK_BYTES));
    loop {
        a.clear();
        b.clear();
        (&mut one).take(CHUNK_BYTES as u64).read_to_end(&mut a)?;
        (&mut other).take(CHUNK_BYTES as u64).read_to_end(&mut b)?;
        if a != b {
            return Ok(false);
        }
        if a.is_empty() {
            return Ok(true);
        }
    }
}
