//! The log of a database (`-wal`) read frame by frame, before SQLite opens it: how far it is valid, and whether it goes on after a frame that is not.
//!
//! SQLite takes the log up to the first frame that is not valid and forgets the rest without a word. Frames of an earlier generation, with other
//! salts, are what a log that began anew leaves behind, and are no frames of this log. Nothing here decides what is damage: see `losses.rs`.

use std::io::{self, Read};

/// The beginning of a log; with the last bit its checksums are those of big-endian words.
const MAGIC: u32 = 0x377f_0682;
const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const PAGE_BYTES: std::ops::RangeInclusive<u32> = 512..=65_536;

/// A checksum of the log, over everything from its beginning.
pub type LogChecksum = [u32; 2];

/// What is in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogContent {
    /// No byte.
    Empty,
    /// So many bytes that do not begin with a valid header.
    NoHeader {
        /// How many.
        bytes: u64,
    },
    /// A header, and what follows it.
    Frames(LogScan),
}

/// The frames of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogScan {
    /// What all frames of this generation carry.
    pub salts: [u32; 2],
    /// Bytes of one page.
    pub page_bytes: u32,
    /// Frames that are valid from the beginning on.
    pub valid: u32,
    /// The checksum of the frame that was asked for, if it is among them.
    pub checksum: Option<LogChecksum>,
    /// Where the log goes on after a frame that is not valid.
    pub gap: Option<LogGap>,
}

/// A frame that is not valid, and later ones that are, up to the end of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGap {
    /// The first frame that is not valid, counted from 1.
    pub frame: u32,
    /// The first later one that follows from its predecessor.
    pub resumes: u32,
}

impl LogScan {
    /// Where a frame begins in the file.
    pub fn offset_of(&self, frame: u32) -> u64 {
        frame_offset(self.page_bytes, frame)
    }
}

/// Where a frame begins in a log with pages of this size.
pub(super) fn frame_offset(page_bytes: u32, frame: u32) -> u64 {
    let each = FRAME_HEADER_BYTES as u64 + u64::from(page_bytes);
    HEADER_BYTES as u64 + u64::from(frame.saturating_sub(1)) * each
}

/// Reads a log to its end; the checksum of one frame, counted from 1, is kept.
pub fn scan_log(mut log: impl Read, checksum_of: u32) -> io::Result<LogContent> {
    let mut header = [0; HEADER_BYTES];
    let got = fill(&mut log, &mut header)?;
    if got == 0 {
        return Ok(LogContent::Empty);
    }
    let Some(header) = LogHeader::read(&header).filter(|_| got == HEADER_BYTES) else {
        let rest = io::copy(&mut log, &mut io::sink())?;
        return Ok(LogContent::NoHeader { bytes: got as u64 + rest });
    };
    let mut scan =
        LogScan { salts: header.salts, page_bytes: header.page_bytes, valid: 0, checksum: None, gap: None };
    let mut frame = vec![0; FRAME_HEADER_BYTES + header.page_bytes as usize];
    let mut number = 0;
    let mut before = header.checksum;
    let mut first_invalid = None;
    let mut resumes = None;
    while fill(&mut log, &mut frame)? == frame.len() {
        number += 1;
        let (head, page) = frame.split_at(FRAME_HEADER_BYTES);
        let stored = [word(head, 16), word(head, 20)];
        let is_ours = word(head, 0) != 0 && [word(head, 8), word(head, 12)] == header.salts;
        let checksum = || header.order.checksum(page, header.order.checksum(&head[..8], before));
        let is_valid = is_ours && checksum() == stored;
        match first_invalid {
            None if is_valid => {
                scan.valid = number;
                if number == checksum_of {
                    scan.checksum = Some(stored);
                }
            }
            None => first_invalid = Some(number),
            // What a killed process wrote of a commit that never was may go on behind what the next one wrote over it; but no commit ends there.
            Some(frame) if is_valid => {
                let resumes = *resumes.get_or_insert(number);
                if word(head, 4) != 0 {
                    scan.gap = Some(LogGap { frame, resumes });
                    break;
                }
            }
            Some(_) => {}
        }
        before = stored;
    }
    Ok(LogContent::Frames(scan))
}

struct LogHeader {
    order: WordOrder,
    page_bytes: u32,
    salts: [u32; 2],
    checksum: LogChecksum,
}

impl LogHeader {
    fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let magic = word(bytes, 0);
        let order = if magic & 1 == 1 { WordOrder::Big } else { WordOrder::Little };
        let page_bytes = word(bytes, 8);
        let checksum = [word(bytes, 24), word(bytes, 28)];
        let is_valid = magic & !1 == MAGIC
            && PAGE_BYTES.contains(&page_bytes)
            && page_bytes.is_power_of_two()
            && order.checksum(&bytes[..24], [0, 0]) == checksum;
        is_valid.then_some(Self { order, page_bytes, salts: [word(bytes, 16), word(bytes, 20)], checksum })
    }
}

/// How the words that a checksum is made of are stored.
#[derive(Clone, Copy)]
enum WordOrder {
    Big,
    Little,
}

impl WordOrder {
    fn checksum(self, bytes: &[u8], before: LogChecksum) -> LogChecksum {
        let [mut first, mut second] = before;
        for pair in bytes.chunks_exact(8) {
            first = first.wrapping_add(self.word(pair, 0)).wrapping_add(second);
            second = second.wrapping_add(self.word(pair, 4)).wrapping_add(first);
        }
        [first, second]
    }

    fn word(self, bytes: &[u8], at: usize) -> u32 {
        match self {
            Self::Big => word(bytes, at),
            Self::Little => word(bytes, at).swap_bytes(),
        }
    }
}

/// The salts of a valid header, and the bytes of a page.
pub(super) fn generation(header: &[u8; HEADER_BYTES]) -> Option<([u32; 2], u32)> {
    LogHeader::read(header).map(|header| (header.salts, header.page_bytes))
}

/// The checksum that a frame's header carries.
pub(super) fn frame_checksum(header: &[u8; FRAME_HEADER_BYTES]) -> LogChecksum {
    [word(header, 16), word(header, 20)]
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

/// Reads until the buffer is full or the file ends.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::log_of;

    /// The log of a database with some commits in it.
    fn log() -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.sqlite");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (v BLOB)",
            )
            .unwrap();
        for _ in 0..8 {
            connection.execute("INSERT INTO t VALUES (randomblob(3000))", []).unwrap();
        }
        std::fs::read(log_of(&path)).unwrap()
    }

    fn scan(log: &[u8]) -> LogScan {
        match scan_log(log, 1).unwrap() {
            LogContent::Frames(scan) => scan,
            other @ (LogContent::Empty | LogContent::NoHeader { .. }) => panic!("{other:?}"),
        }
    }

    #[test]
    fn whole_log_is_valid_to_its_last_frame() {
        let log = log();
        let whole = scan(&log);
        assert_eq!(whole.offset_of(whole.valid + 1), log.len() as u64);
        assert_eq!(whole.gap, None);
        assert!(whole.checksum.is_some() && whole.valid > 8);
    }

    #[test]
    fn any_flipped_bit_ends_the_valid_part_at_its_frame() {
        let log = log();
        let whole = scan(&log);
        for at in (HEADER_BYTES..log.len()).step_by(97) {
            let mut damaged = log.clone();
            damaged[at] ^= 4;
            let found = scan(&damaged);
            let frame = found.valid + 1;
            assert!((whole.offset_of(frame)..whole.offset_of(frame + 1)).contains(&(at as u64)), "{at}");
            // Only the checksum of the last frame has no successor that shows where the log goes on.
            let is_last = frame + 1 >= whole.valid;
            assert!(is_last || found.gap.is_some_and(|gap| gap.frame == frame), "{at}: {found:?}");
        }
    }

    #[test]
    fn damaged_header_is_no_header_and_an_empty_log_is_empty() {
        let mut log = log();
        for at in 0..HEADER_BYTES {
            log[at] ^= 1;
            assert_eq!(scan_log(&*log, 1).unwrap(), LogContent::NoHeader { bytes: log.len() as u64 }, "{at}");
            log[at] ^= 1;
        }
        assert_eq!(scan_log(&b""[..], 1).unwrap(), LogContent::Empty);
        assert_eq!(scan_log(&log[..31], 1).unwrap(), LogContent::NoHeader { bytes: 31 });
    }

    /// A process is killed in a commit that outgrew its cache, and the next one writes a smaller commit over the beginning of that.
    #[test]
    fn rest_of_an_unfinished_commit_is_no_gap() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (directory.path().join("first.sqlite"), directory.path().join("second.sqlite"));
        let open = |path: &std::path::Path| {
            let connection = rusqlite::Connection::open(path).unwrap();
            connection
                .execute_batch(
                    "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 2;
                     CREATE TABLE IF NOT EXISTS t (v BLOB)",
                )
                .unwrap();
            connection
        };
        let killed = open(&first);
        killed.execute_batch("BEGIN IMMEDIATE").unwrap();
        for _ in 0..40 {
            killed.execute("INSERT INTO t VALUES (randomblob(3000))", []).unwrap();
        }
        for part in ["", "-wal"] {
            let of = |path: &std::path::Path| format!("{}{part}", path.display());
            std::fs::copy(of(&first), of(&second)).unwrap();
        }
        let next = open(&second);
        next.execute("INSERT INTO t VALUES (1)", []).unwrap();
        let log = std::fs::read(log_of(&second)).unwrap();
        let found = scan(&log);
        assert!(
            found.offset_of(found.valid + 3) < log.len() as u64,
            "nothing is left of the unfinished commit"
        );
        assert_eq!(found.gap, None);
    }
}
