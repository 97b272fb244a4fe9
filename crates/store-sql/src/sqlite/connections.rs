//! The connections of a store on a file: one that writes, one that moves the log, some that read.

use std::sync::{Arc, Mutex};

use rusqlite::{Connection, ErrorCode};

use super::readers::Readers;
use super::watermark::MarkWriter;
use super::{SqliteOptions, accepted_loss, connect, failure};
use crate::OpenError;

/// SQLite's own file layer for a file that one process alone has open: it needs no room for the index of the log.
const INDEX_IN_MEMORY: &str = "unix-excl";

/// All connections of a store.
pub(super) struct Connections {
    pub(super) writer: Connection,
    pub(super) mark: Option<Arc<Mutex<MarkWriter>>>,
    pub(super) checkpointer: Connection,
    pub(super) readers: Vec<Connection>,
}

impl Connections {
    /// Opens them; on a full disk so that reads can be served all the same.
    pub(super) fn open(options: &SqliteOptions) -> Result<Self, OpenError> {
        match Self::open_all(options) {
            Err(error) if options.vfs.is_none() && is_out_of_room(&error) => {
                let options = SqliteOptions { vfs: Some(INDEX_IN_MEMORY.to_owned()), ..options.clone() };
                let opened = Self::open_all(&options)?;
                tracing::warn!(
                    path = %options.path.display(),
                    "the disk is full: the index of the log is kept in memory, and no other process can read the store until the next start"
                );
                Ok(opened)
            }
            opened => opened,
        }
    }

    fn open_all(options: &SqliteOptions) -> Result<Self, OpenError> {
        let (writer, mark) = match options.vfs.as_deref() {
            None | Some(INDEX_IN_MEMORY) => {
                let (writer, mark) = accepted_loss::open_writer(options)?;
                (writer, Some(Arc::new(Mutex::new(mark))))
            }
            Some(_) => (connect::writer(options)?, None),
        };
        let checkpointer = connect::checkpointer(options)?;
        Ok(Self { writer, mark, checkpointer, readers: Readers::connect(options)? })
    }
}

/// Whether there is no room even for the index of the log, which all connections share.
fn is_out_of_room(error: &OpenError) -> bool {
    let OpenError::Database(error) = error else { return false };
    failure::is_out_of_index_space(error) || error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}
