//! The writer of a store that was examined first, and what is done when an operator goes on with a store that has lost commits.
//!
//! An accepted loss is written down in the store, so that `verify` shows it; the log is set aside, not removed; and no position that was lost is
//! given again, because whoever follows the ledger may have seen it.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use domain::Timestamp;
use rusqlite::Connection;

use super::losses::{Examination, Loss, examine_locked};
use super::watermark::MarkWriter;
use super::{SqliteOptions, connect, last_position};
use crate::OpenError;
use crate::backup::{POSITIONS_LEFT_OUT, beside, log_of};
use crate::database::{Database, at_once, integer, one};
use crate::dialect::Sql;
use crate::rows::signed;

/// Logs that are set aside at most.
const MAX_SET_ASIDE: u32 = 1_000;

/// A loss that an operator has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedLoss {
    /// When.
    pub at: Timestamp,
    /// Where the ledger ended.
    pub position: u64,
    /// Up to where commits were acknowledged, as far as that is known.
    pub acknowledged: u64,
}

/// Opens the connection that writes, if file and log are what was acknowledged, or if losses are accepted. The lock is held.
pub(super) fn open_writer(options: &SqliteOptions) -> Result<(Connection, MarkWriter), OpenError> {
    let path = &options.path;
    let examined = examine_locked(path)?;
    let mut loss = examined.loss;
    if let Some(found) = loss {
        if options.accept_loss.is_none() {
            examined.refuse(path)?;
        }
        set_log_aside(path, found)?;
    }
    if examined.watermark.is_none() && examined.file_counter.is_some() {
        tracing::warn!(
            path = %path.display(),
            "there is no readable watermark beside the store: commits that were lost before this start are not noticed"
        );
    }
    sync_file(path).map_err(|source| OpenError::Io { path: path.clone(), source })?;
    let mut mark = MarkWriter::new(path, &examined, options.durability);
    let mut is_marked = false;
    let connection = connect::checked_writer(options, |connection| {
        match examined.check_ledger(connection, path) {
            Err(OpenError::Damaged { loss: found, .. }) if options.accept_loss.is_some() => {
                loss = Some(found);
            }
            checked => checked?,
        }
        if loss.is_some() {
            mark.forget_lost();
        }
        mark.opening();
        is_marked = true;
        Ok(())
    })?;
    if !is_marked {
        mark.opening();
    }
    if let (Some(loss), Some(at)) = (loss, options.accept_loss) {
        write_down(&connection, &examined, loss, at)?;
    }
    Ok((connection, mark))
}

/// What a killed process wrote to the file without a sync is on the disk before the watermark names the file's counter: else a power loss would leave
/// a file that looks earlier. Before SQLite has the file open: closing it here would drop its locks.
pub(super) fn sync_file(path: &Path) -> std::io::Result<()> {
    match File::open(path) {
        Ok(file) => file.sync_all(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// A log of another file must not be used; of any other a copy stays, in case somebody can make more of it.
fn set_log_aside(path: &Path, loss: Loss) -> Result<(), OpenError> {
    let log = log_of(&path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    if !log.exists() {
        return Ok(());
    }
    let aside = free_name(&log);
    let set = if loss.is_log_of_another_file() {
        std::fs::rename(&log, &aside)
    } else {
        std::fs::copy(&log, &aside).map(|_| ())
    };
    set.map_err(|source| OpenError::Io { path: aside.clone(), source })?;
    tracing::warn!(log = %aside.display(), "the damaged log was set aside");
    Ok(())
}

fn free_name(log: &Path) -> PathBuf {
    let mut names = (1..MAX_SET_ASIDE).map(|number| beside(log, &format!(".damaged-{number}")));
    names.find(|name| !name.exists()).unwrap_or_else(|| beside(log, ".damaged"))
}

static WRITE_META: Sql = Sql::new(
    "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
);

fn write_down(
    connection: &Connection,
    examined: &Examination,
    loss: Loss,
    at: Timestamp,
) -> Result<(), OpenError> {
    let position = last_position(connection)?;
    let acknowledged = examined.watermark.map_or(0, |watermark| watermark.position).max(position);
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for (name, value) in [
        ("accepted_loss_at", at.micros()),
        ("accepted_loss_position", signed(position)),
        ("accepted_loss_acknowledged", signed(acknowledged)),
        ("last_position", signed(acknowledged + POSITIONS_LEFT_OUT)),
    ] {
        at_once(Database::execute(connection, &WRITE_META, &[name.into(), value.into()]))?;
    }
    connection.execute_batch("COMMIT")?;
    tracing::warn!(
        code = loss.code(),
        position,
        acknowledged,
        goes_on_after = acknowledged + POSITIONS_LEFT_OUT,
        "lost commits were accepted by the operator: {loss}"
    );
    Ok(())
}

static META: Sql = Sql::new("SELECT value FROM meta WHERE name = $1");

/// The last loss that an operator has accepted on a file.
pub fn accepted_loss(connection: &Connection) -> Result<Option<AcceptedLoss>, OpenError> {
    let read = |name: &str| at_once(one(connection, &META, &[name.into()], |row| integer(row, 0)));
    let Some(at) = read("accepted_loss_at")? else { return Ok(None) };
    let count = |value: Option<i64>| u64::try_from(value.unwrap_or_default()).unwrap_or_default();
    Ok(Some(AcceptedLoss {
        at: Timestamp::from_micros(at),
        position: count(read("accepted_loss_position")?),
        acknowledged: count(read("accepted_loss_acknowledged")?),
    }))
}
