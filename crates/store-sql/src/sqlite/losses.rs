//! What is there compared with what was acknowledged, before anything is written: damage and losses that SQLite would not tell.
//!
//! A killed process and a power loss leave a log that ends early or has holes after the last acknowledged frame. Everything else is damage. Frames
//! up to the watermark must be there whatever happened, unless commits were acknowledged before their sync (`Relaxed`) and the machine was started
//! anew since. Without a watermark a hole is refused: nobody knows what was acknowledged.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::Connection;
use store::Checksum;

use super::log_scan::{LogContent, LogGap, LogScan, scan_log};
use super::watermark::{BootId, Phase, Watermark, mark_of, read_watermark};
use super::{FileLock, connect, last_position};
use crate::OpenError;
use crate::backup::log_of;
use crate::database::{at_once, digest, one};
use crate::dialect::Sql;

/// Where a database file counts its changes; the number of its pages comes after it.
const CHANGE_COUNTER_OFFSET: u64 = 24;
/// The first page holds the list of tables; each table has a page of its own.
const PAGES_WITH_A_TABLE: u32 = 2;
/// A log of at most so many bytes holds no whole frame.
const NO_FRAME_BYTES: u64 = 56;
/// How often a log may have begun anew since the watermark was last on the disk. One would do, because the first watermark of each generation is
/// synced; a sync that fails leaves an earlier one.
const MAX_GENERATIONS: u32 = 64;

/// What was lost or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The log is not valid up to where it was acknowledged.
    LogCut {
        /// The first frame that is not valid.
        frame: u32,
        /// Where it begins.
        offset: u64,
        /// The last frame that was acknowledged.
        acknowledged: u32,
    },
    /// The log goes on after a frame that is not valid.
    LogGap {
        /// Where.
        gap: LogGap,
        /// Where the first of them begins.
        offset: u64,
    },
    /// The log does not begin with a valid header, and has frames.
    LogHeader {
        /// How many bytes it has.
        bytes: u64,
    },
    /// The log is not one that this database has had.
    LogForeign,
    /// The log is gone, and what was in it is not in the file.
    LogGone {
        /// The last frame that was acknowledged.
        acknowledged: u32,
    },
    /// The file is an earlier one.
    FileOlder {
        /// The change counter that it has.
        found: u32,
        /// The one that it had.
        expected: u32,
    },
    /// The ledger ends before what was acknowledged.
    LedgerShort {
        /// Where it ends.
        position: u64,
        /// The position that was acknowledged.
        acknowledged: u64,
    },
    /// Another fact is where the last acknowledged one was.
    OtherLedger {
        /// Where.
        position: u64,
    },
}

impl Loss {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::LogCut { .. }
            | Self::LogGap { .. }
            | Self::LogHeader { .. }
            | Self::LogForeign
            | Self::LogGone { .. } => "log_damaged",
            Self::FileOlder { .. } | Self::LedgerShort { .. } | Self::OtherLedger { .. } => "commits_lost",
        }
    }

    /// Whether the log may be that of another file: read into this one it would mix pages of two times.
    pub(super) fn is_log_of_another_file(self) -> bool {
        matches!(self, Self::LogForeign | Self::FileOlder { .. })
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LogCut { frame, offset, acknowledged } => write!(
                f,
                "its log (-wal) cannot be read from frame {frame} on, at byte {offset}, and commits up to frame {acknowledged} were acknowledged"
            ),
            Self::LogGap { gap: LogGap { frame, resumes }, offset } => write!(
                f,
                "its log (-wal) is damaged at frame {frame}, at byte {offset}, and goes on at frame {resumes}"
            ),
            Self::LogHeader { bytes } => {
                write!(f, "its log (-wal) of {bytes} bytes does not begin with a valid header")
            }
            Self::LogForeign => f.write_str("its log (-wal) is that of another database or of another time"),
            Self::LogGone { acknowledged } => write!(
                f,
                "its log (-wal) is gone or empty, and commits up to frame {acknowledged} of it were acknowledged and are not in the file"
            ),
            Self::FileOlder { found, expected } => {
                write!(f, "it is an earlier file: its change counter is {found} and was {expected} already")
            }
            Self::LedgerShort { position, acknowledged } => write!(
                f,
                "its ledger ends at position {position}, and commits up to position {acknowledged} were acknowledged"
            ),
            Self::OtherLedger { position } => {
                write!(f, "another fact is at position {position} than the one that was acknowledged")
            }
        }
    }
}

/// What is known of a store before SQLite opens it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Examination {
    pub(super) watermark: Option<Watermark>,
    /// The change counter of the file; none where another process has it open, or where there is no file.
    pub(super) file_counter: Option<u32>,
    pub(super) loss: Option<Loss>,
}

impl Examination {
    /// Refuses what was found.
    pub(super) fn refuse(&self, path: &Path) -> Result<(), OpenError> {
        self.loss.map_or(Ok(()), |loss| Err(OpenError::Damaged { path: path.to_owned(), loss }))
    }

    /// Refuses a ledger that ends before what was acknowledged.
    pub(super) fn check_ledger(&self, connection: &Connection, path: &Path) -> Result<(), OpenError> {
        let Some(watermark) = &self.watermark else { return Ok(()) };
        let loss = check_ledger(connection, watermark).map_err(|error| connect::unreadable(path, error))?;
        loss.map_or(Ok(()), |loss| Err(OpenError::Damaged { path: path.to_owned(), loss }))
    }
}

/// Looks at file, log and watermark. Beside a daemon that runs only the watermark is read: its log is being written.
pub(super) fn examine(path: &Path) -> Result<Examination, OpenError> {
    if FileLock::holder(path).is_some() {
        return Ok(Examination { watermark: watermark(path)?, ..Examination::default() });
    }
    examine_locked(path)
}

/// Refuses a file that has lost what its watermark says was acknowledged. Opens nothing.
pub fn refuse_damaged(path: &Path) -> Result<(), OpenError> {
    examine(path)?.refuse(path)
}

/// The examination of whoever has the lock.
pub(super) fn examine_locked(path: &Path) -> Result<Examination, OpenError> {
    let watermark = watermark(path)?;
    let header = file_header(path).map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
    let log = log_of(&path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    let frame = watermark.and_then(|watermark| watermark.log).map_or(0, |place| place.frames);
    let content = match File::open(&log) {
        Ok(file) => scan_log(BufReader::with_capacity(1 << 17, file), frame),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(LogContent::Empty),
        Err(error) => Err(error),
    };
    let content = content.map_err(|source| OpenError::Io { path: log, source })?;
    let loss = judge(watermark.as_ref(), BootId::now(), &content, header).err();
    Ok(Examination { watermark, file_counter: header.map(|header| header.change_counter), loss })
}

fn watermark(path: &Path) -> Result<Option<Watermark>, OpenError> {
    read_watermark(path).map_err(|source| OpenError::Io { path: mark_of(path), source })
}

/// What the header of a database file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// How often the file was changed.
    pub change_counter: u32,
    /// How many pages it has. A file with a table has at least two.
    pub pages: u32,
}

impl FileHeader {
    /// The header of a file; none if it is too short to have one.
    fn of(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; 8];
        match file.read_exact_at(&mut bytes, CHANGE_COUNTER_OFFSET) {
            Ok(()) => Ok(Some(Self::decode(bytes))),
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::IsADirectory) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn decode([a, b, c, d, pages @ ..]: [u8; 8]) -> Self {
        Self { change_counter: u32::from_be_bytes([a, b, c, d]), pages: u32::from_be_bytes(pages) }
    }
}

/// The header of the file at a path; none if there is no file, or one without a header.
fn file_header(path: &Path) -> io::Result<Option<FileHeader>> {
    match File::open(path) {
        Ok(file) => FileHeader::of(&file),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The change counter of a file; none if it has no header.
pub(super) fn file_counter(path: &Path) -> io::Result<Option<u32>> {
    Ok(file_header(path)?.map(|header| header.change_counter))
}

/// Whether file and log may be what is left of a store of which this much was acknowledged.
pub fn judge(
    watermark: Option<&Watermark>,
    boot: BootId,
    log: &LogContent,
    file: Option<FileHeader>,
) -> Result<(), Loss> {
    let Some(watermark) = watermark else {
        return match log {
            LogContent::Empty => Ok(()),
            LogContent::NoHeader { bytes } => check_no_frames(*bytes),
            LogContent::Frames(scan) => check_gap(scan),
        };
    };
    if watermark.may_have_lost_power_unsynced(boot) {
        return Ok(());
    }
    let power_lost = watermark.boot.may_have_ended(boot);
    match file {
        Some(FileHeader { change_counter: found, .. }) if found < watermark.file_counter => {
            return Err(Loss::FileOlder { found, expected: watermark.file_counter });
        }
        None if watermark.position > 0 => {
            return Err(Loss::LedgerShort { position: 0, acknowledged: watermark.position });
        }
        Some(_) | None => {}
    }
    match log {
        LogContent::Empty => check_in_file(watermark, file),
        LogContent::NoHeader { bytes } => {
            // A log that begins anew writes its header over the old one: torn by a power loss, what was before is in the file.
            if !power_lost {
                check_no_frames(*bytes)?;
            }
            check_in_file(watermark, file)
        }
        LogContent::Frames(scan) => match watermark.log {
            Some(place) if place.salts == scan.salts => {
                if scan.valid < place.frames || scan.checksum != Some(place.checksum) {
                    let frame = scan.valid + 1;
                    return Err(Loss::LogCut {
                        frame,
                        offset: scan.offset_of(frame),
                        acknowledged: place.frames,
                    });
                }
                // What comes after was acknowledged to nobody, and may have holes: a commit that outgrows its cache goes back to its frames.
                Ok(())
            }
            Some(place) if follows(place.salts, scan.salts) => check_in_file(watermark, file),
            Some(_) | None if watermark.phase == Phase::Opening => Ok(()),
            // What SQLite does not use cannot harm.
            Some(_) | None if scan.valid == 0 && scan.gap.is_none() => check_in_file(watermark, file),
            Some(_) | None => Err(Loss::LogForeign),
        },
    }
}

/// A log that begins anew adds one to its first salt and draws the second.
fn follows(before: [u32; 2], salts: [u32; 2]) -> bool {
    (1..=MAX_GENERATIONS).contains(&salts[0].wrapping_sub(before[0]))
}

fn check_no_frames(bytes: u64) -> Result<(), Loss> {
    if bytes > NO_FRAME_BYTES { Err(Loss::LogHeader { bytes }) } else { Ok(()) }
}

fn check_gap(scan: &LogScan) -> Result<(), Loss> {
    match scan.gap {
        Some(gap) => Err(Loss::LogGap { gap, offset: scan.offset_of(gap.frame) }),
        None => Ok(()),
    }
}

/// Without the log that it speaks of, all of that must be in the file: the first commit after each start raises the file's counter. That of a file
/// that was new then tells nothing, because SQLite raises it once more before the log begins; but without a table nothing of a log is in it.
fn check_in_file(watermark: &Watermark, file: Option<FileHeader>) -> Result<(), Loss> {
    let is_as_opened =
        |file: FileHeader| file.change_counter <= watermark.file_counter || file.pages < PAGES_WITH_A_TABLE;
    match (watermark.phase, watermark.log) {
        (Phase::Serving, Some(place)) if file.is_none_or(is_as_opened) => {
            Err(Loss::LogGone { acknowledged: place.frames })
        }
        (Phase::Serving | Phase::Opening | Phase::Closed, _) => Ok(()),
    }
}

static CHECKSUM_AT: Sql = Sql::new("SELECT checksum FROM facts WHERE position = $1");

/// Compares the ledger with what was acknowledged.
pub(super) fn check_ledger(connection: &Connection, watermark: &Watermark) -> rusqlite::Result<Option<Loss>> {
    if watermark.may_have_lost_power_unsynced(BootId::now()) {
        return Ok(None);
    }
    let acknowledged = watermark.position;
    let position = last_position(connection)?;
    if position < acknowledged {
        return Ok(Some(Loss::LedgerShort { position, acknowledged }));
    }
    let Some(head) = watermark.head else { return Ok(None) };
    let place = [crate::rows::signed(acknowledged).into()];
    // A fact that has gone with its record tells nothing.
    let found = at_once(one(connection, &CHECKSUM_AT, &place, |row| digest(row, 0).map(Checksum)))?;
    Ok(found.filter(|found| *found != head).map(|_| Loss::OtherLedger { position: acknowledged }))
}
