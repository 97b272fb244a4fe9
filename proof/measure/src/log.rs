//! SQLite's write-ahead log, read as it lies on the disk: how many durable commits there were, and how many pages each of them had.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// Where the two numbers lie that change whenever the log begins anew.
const SALTS: std::ops::Range<usize> = 16..24;
const FRAME_SALTS: std::ops::Range<usize> = 8..16;

/// The log of one database.
pub struct Log {
    path: PathBuf,
}

/// What was in it at one time.
pub struct Seen {
    salts: Vec<u8>,
    /// Pages of each commit, oldest first.
    commits: Vec<u32>,
}

impl Log {
    /// Of the database in this file.
    pub fn of(database: &Path) -> Self {
        Self { path: database.with_extension("sqlite-wal") }
    }

    /// Reads all of it. What an earlier turn of the log has left behind is not of it.
    pub fn read(&self) -> Result<Seen> {
        let bytes = fs::read(&self.path)?;
        let header = bytes.get(..HEADER_BYTES).context("the log has no header")?;
        let page = usize::try_from(number(&header[8..12]))?;
        ensure!(page.is_power_of_two(), "{} is no log of SQLite", self.path.display());
        let salts = header[SALTS].to_vec();
        let (mut commits, mut pages) = (Vec::new(), 0);
        for frame in bytes[HEADER_BYTES..].chunks_exact(FRAME_HEADER_BYTES + page) {
            if frame[FRAME_SALTS] != salts[..] {
                break;
            }
            pages += 1;
            // The last page of a commit says how large the database is; the others say nothing.
            if number(&frame[4..8]) != 0 {
                commits.push(std::mem::take(&mut pages));
            }
        }
        Ok(Seen { salts, commits })
    }
}

impl Seen {
    /// The pages of each commit since an earlier look; none if the log has begun anew meanwhile.
    pub fn since(&self, earlier: &Self) -> Option<&[u32]> {
        if self.salts != earlier.salts {
            return None;
        }
        self.commits.get(earlier.commits.len()..)
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
