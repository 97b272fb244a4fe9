//! The scratch directory of a proof: refused at once where none can be made, and gone when it is dropped.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::exit::Failed;

/// A process of a command that is just ending may write while its directory is taken away.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// A directory of the proof's own.
pub struct Scratch {
    path: PathBuf,
    kept: bool,
}

impl Scratch {
    /// Makes one in this directory, or in the temporary one. The directory itself is the user's to make.
    pub fn make(dir: Option<&Path>, name: &str) -> Result<Self, Failed> {
        let dir = dir.map_or_else(std::env::temp_dir, Path::to_owned);
        let refused = |what: String| Failed::usage(format!("{} {what}", dir.display()));
        match dir.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(refused("does not exist; make it first, or name another with --dir".to_owned()));
            }
            Err(error) => return Err(refused(format!("cannot be used: {error}"))),
            Ok(about) if !about.is_dir() => {
                return Err(refused("is not a directory; name one with --dir".to_owned()));
            }
            Ok(_) => {}
        }
        let unwritable =
            |error| refused(format!("cannot be written to: {error}; name another directory with --dir"));
        let path = dir.canonicalize().map_err(unwritable)?.join(name);
        std::fs::create_dir(&path).map_err(unwritable)?;
        Ok(Self { path, kept: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it for whoever wants to look.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        for tries_left in (0..TRIES).rev() {
            match std::fs::remove_dir_all(&self.path) {
                Ok(()) => return,
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && tries_left > 0 => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => {
                    eprintln!("longhaul: {} is left: {error}", self.path.display());
                    return;
                }
            }
        }
    }
}
