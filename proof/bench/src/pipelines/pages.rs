//! Raw SQLite that makes commits of a given number of pages one after the other, as many of them synced as one likes. It reads nothing, and
//! finds every page by its number.

use std::path::Path;

use anyhow::Result;
use measure::raw::{self, Checkpointer};
use rusqlite::{Connection, params};

/// One row fills a page.
const ROW_BYTES: usize = 3_500;
/// More than any commit has; a row is written again after so many others.
const ROWS: u32 = 4_096;

/// A database whose commits have as many pages as one likes.
pub struct Pages {
    connection: Connection,
    _checkpointer: Checkpointer,
    next: u32,
    written: u8,
}

impl Pages {
    /// In a new file, with the settings of our store.
    pub fn new(path: &Path) -> Result<Self> {
        let mut connection = raw::open(path)?;
        connection.execute_batch("CREATE TABLE pages (id INTEGER PRIMARY KEY, filler BLOB NOT NULL)")?;
        let filling = connection.transaction()?;
        for id in 0..ROWS {
            filling.execute("INSERT INTO pages VALUES (?1, ?2)", params![id, [0_u8; ROW_BYTES]])?;
        }
        filling.commit()?;
        let checkpointer = Checkpointer::beside(&mut connection, path)?;
        Ok(Self { connection, _checkpointer: checkpointer, next: 0, written: 0 })
    }

    /// One commit for each number of pages; so many of them are synced, each before the next begins.
    pub fn commit_all(&mut self, commits: &[u32], synced: usize) -> Result<()> {
        let (without, with) = commits.split_at(commits.len().saturating_sub(synced));
        for (synchronous, commits) in [("NORMAL", without), ("FULL", with)] {
            self.connection.pragma_update(None, "synchronous", synchronous)?;
            for pages in commits {
                self.commit(*pages)?;
            }
        }
        Ok(())
    }

    fn commit(&mut self, pages: u32) -> Result<()> {
        if self.next + pages > ROWS {
            self.next = 0;
        }
        self.written = self.written.wrapping_add(1);
        let filler = [self.written; ROW_BYTES];
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.connection
            .prepare_cached("UPDATE pages SET filler = ?1 WHERE id >= ?2 AND id < ?3")?
            .execute(params![filler, self.next, self.next + pages])?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.next += pages;
        Ok(())
    }
}
