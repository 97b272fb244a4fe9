//! The watermark: how far commits were acknowledged, in a small file beside the database (`.mark`), written after every acknowledged batch.
//!
//! It is not synced, and need not be: the page cache survives a killed process, and after a power loss the file holds an earlier state, never a
//! later one than the disk, because it is written after the sync. Two slots with a checksum each: a torn write leaves the other one.
//! `losses.rs` compares it with what is there.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use store::{Checksum, sha256};

use super::log_scan::{LogChecksum, frame_checksum, frame_offset, generation};
use super::losses::{Examination, file_counter};
use crate::Durability;
use crate::backup::{beside, log_of};

const MAGIC: [u8; 8] = *b"LHMARK1\n";
const SLOT_BYTES: usize = 128;
/// What of a slot its checksum covers.
const COVERED_BYTES: usize = SLOT_BYTES - 16;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// One boot of the machine; none where the system does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootId(Option<[u8; 16]>);

impl BootId {
    /// That of now.
    pub fn now() -> Self {
        let digits = std::fs::read_to_string(BOOT_ID).unwrap_or_default().replace('-', "");
        Self(u128::from_str_radix(digits.trim(), 16).ok().map(u128::to_be_bytes))
    }

    /// One that nobody knows: the machine may have lost power since.
    pub const fn unknown() -> Self {
        Self(None)
    }

    /// Whether the machine may have lost power between the two.
    pub(super) fn may_have_ended(self, now: Self) -> bool {
        self.0.is_none() || self != now
    }
}

/// A place in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPlace {
    /// The generation of the log.
    pub salts: [u32; 2],
    /// How many frames there are up to here.
    pub frames: u32,
    /// The checksum of the last one.
    pub checksum: LogChecksum,
}

/// What the process was doing when it wrote the watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is about to write: the log may have begun anew since, under salts that nobody has noted.
    Opening,
    /// Commits are acknowledged one after the other.
    Serving,
    /// It has stopped, and the log is in the file.
    Closed,
}

/// How far commits were acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// The boot in which it was written.
    pub boot: BootId,
    /// Whether what it says was synced before; if not, a power loss may take it.
    pub durability: Durability,
    /// What the process was doing.
    pub phase: Phase,
    /// The highest position that was acknowledged.
    pub position: u64,
    /// The checksum of the fact there; none if that fact was not seen being written.
    pub head: Option<Checksum>,
    /// The end of the log then; none before the first commit.
    pub log: Option<LogPlace>,
    /// The change counter of the file when it was opened, or closed.
    pub file_counter: u32,
}

impl Watermark {
    /// Whether a power loss since then may have taken what was acknowledged before its sync.
    pub(super) fn may_have_lost_power_unsynced(&self, now: BootId) -> bool {
        self.durability == Durability::Relaxed && self.boot.may_have_ended(now)
    }

    fn encode(&self, sequence: u64) -> [u8; SLOT_BYTES] {
        let phase = match self.phase {
            Phase::Opening => 0,
            Phase::Serving => 1,
            Phase::Closed => 2,
        };
        let relaxed = u8::from(self.durability == Durability::Relaxed);
        let place = self.log.unwrap_or(LogPlace { salts: [0; 2], frames: 0, checksum: [0; 2] });
        let mut slot = Vec::with_capacity(SLOT_BYTES);
        slot.extend(MAGIC);
        slot.extend(sequence.to_be_bytes());
        slot.extend(self.boot.0.unwrap_or_default());
        slot.extend([phase, relaxed, u8::from(self.head.is_some()), u8::from(self.log.is_some())]);
        slot.extend(self.position.to_be_bytes());
        slot.extend(self.head.unwrap_or_default().0);
        for word in place.salts.into_iter().chain([place.frames]).chain(place.checksum) {
            slot.extend(word.to_be_bytes());
        }
        slot.extend(self.file_counter.to_be_bytes());
        slot.resize(COVERED_BYTES, 0);
        let digest = sha256(&slot);
        slot.extend(&digest.0[..SLOT_BYTES - COVERED_BYTES]);
        slot.try_into().expect("a slot has its size")
    }

    fn decode(slot: &[u8; SLOT_BYTES]) -> Option<(u64, Self)> {
        let (covered, digest) = slot.split_at(COVERED_BYTES);
        if covered[..8] != MAGIC || sha256(covered).0[..digest.len()] != *digest {
            return None;
        }
        let word = |at: usize| u32::from_be_bytes(covered[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_be_bytes(covered[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| -> [u8; 16] { covered[at..at + 16].try_into().expect("sixteen bytes") };
        let phase = match covered[32] {
            0 => Phase::Opening,
            1 => Phase::Serving,
            2 => Phase::Closed,
            _ => return None,
        };
        let boot = Some(half(16)).filter(|id| *id != [0; 16]);
        let log = LogPlace { salts: [word(60), word(64)], frames: word(68), checksum: [word(72), word(76)] };
        let watermark = Self {
            boot: BootId(boot),
            durability: if covered[33] == 1 { Durability::Relaxed } else { Durability::Full },
            phase,
            position: long(36),
            head: (covered[34] == 1).then(|| Checksum(half(44))),
            log: (covered[35] == 1).then_some(log),
            file_counter: word(80),
        };
        Some((long(8), watermark))
    }
}

/// Where the watermark of a database is, by the path of the database itself.
pub(crate) fn mark_of(database: &Path) -> PathBuf {
    beside(&database.canonicalize().unwrap_or_else(|_| database.to_owned()), ".mark")
}

/// The watermark of a database; none if there is none that can be read.
pub(super) fn read_watermark(database: &Path) -> io::Result<Option<Watermark>> {
    match File::open(mark_of(database)) {
        Ok(file) => Ok(newest(&file)?.map(|(_, watermark)| watermark)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn newest(file: &File) -> io::Result<Option<(u64, Watermark)>> {
    let mut best = None;
    for slot in 0..2 {
        let mut bytes = [0; SLOT_BYTES];
        match file.read_exact_at(&mut bytes, slot * SLOT_BYTES as u64) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => continue,
            Err(error) => return Err(error),
        }
        let found = Watermark::decode(&bytes);
        best = best.into_iter().chain(found).max_by_key(|(sequence, _)| *sequence);
    }
    Ok(best)
}

/// Writes the watermark of one database as long as its store is open. That of the opening must be written before the first commit: an earlier one
/// does not know the log that this process begins. Any later one may fail: an earlier watermark of the same process refuses nothing that is whole.
pub(crate) struct MarkWriter {
    database: PathBuf,
    watermark: Watermark,
    /// How this process commits. The watermark says so from its first commit on: before, it speaks of commits of others.
    durability: Durability,
    is_opening_written: bool,
    /// The generation of the log in the watermark that was synced last.
    synced_salts: Option<[u32; 2]>,
    sequence: u64,
    file: Option<File>,
    log: Option<File>,
    has_failed: bool,
}

impl MarkWriter {
    /// Goes on from what was read; nothing is written yet.
    pub(super) fn new(database: &Path, examined: &Examination, durability: Durability) -> Self {
        // What a power loss was allowed to take is no measure any more.
        let before = examined.watermark.filter(|before| !before.may_have_lost_power_unsynced(BootId::now()));
        let watermark = Watermark {
            boot: BootId::now(),
            durability: before.map_or(durability, |before| before.durability),
            phase: Phase::Opening,
            position: before.map_or(0, |before| before.position),
            head: before.and_then(|before| before.head),
            log: before.and_then(|before| before.log),
            file_counter: examined.file_counter.unwrap_or_default(),
        };
        let database = database.canonicalize().unwrap_or_else(|_| database.to_owned());
        Self {
            database,
            watermark,
            durability,
            is_opening_written: false,
            synced_salts: None,
            sequence: 0,
            file: None,
            log: None,
            has_failed: false,
        }
    }

    /// A loss was accepted: the end of the log and the newest fact, as they were acknowledged, are no measure any more.
    pub(super) fn forget_lost(&mut self) {
        self.watermark.log = None;
        self.watermark.head = None;
    }

    /// Before the first write of a process: the log may begin anew under other salts. Synced, because nothing that the log will hold is known.
    pub(super) fn opening(&mut self) {
        self.watermark.phase = Phase::Opening;
        if let Err(error) = self.write_opening() {
            self.failed(&error);
        }
    }

    /// Writes the watermark of the opening if that failed before, as on a full disk.
    pub(super) fn write_opening(&mut self) -> io::Result<()> {
        if !self.is_opening_written {
            self.try_write(WriteMode::Synced)?;
            self.is_opening_written = true;
        }
        Ok(())
    }

    /// After a commit that is acknowledged next. The first of each generation of the log is synced: its salts are known also after a power loss.
    pub(super) fn acknowledged(&mut self, position: u64, head: Option<Checksum>, frames: u32) {
        self.note(position, head, frames);
        let salts = self.watermark.log.map(|place| place.salts);
        if salts == self.synced_salts {
            self.write(WriteMode::Unsynced);
        } else {
            self.write(WriteMode::Synced);
            self.synced_salts = salts;
        }
    }

    /// Whether the next commit is the first of this process, and must raise the counter of the file.
    pub(super) fn is_opening(&self) -> bool {
        self.watermark.phase == Phase::Opening
    }

    fn note(&mut self, position: u64, head: Option<Checksum>, frames: u32) {
        if position != self.watermark.position || head.is_some() {
            self.watermark.head = head;
        }
        self.watermark.position = position;
        self.watermark.durability = self.durability;
        match self.end_of_log(frames) {
            Ok(place) => {
                self.watermark.log = place;
                self.watermark.phase = Phase::Serving;
            }
            Err(error) => self.failed(&error),
        }
    }

    /// After the last connection was closed: whether the log went into the file shows in its being gone.
    pub(super) fn closed(&mut self) {
        let is_gone = log_of(&self.database)
            .metadata()
            .map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |about| about.len() == 0);
        if is_gone && let Ok(Some(file_counter)) = file_counter(&self.database) {
            self.watermark.phase = Phase::Closed;
            self.watermark.file_counter = file_counter;
            self.write(WriteMode::Unsynced);
        }
    }

    fn end_of_log(&mut self, frames: u32) -> io::Result<Option<LogPlace>> {
        if frames == 0 {
            return Ok(None);
        }
        if self.log.is_none() {
            self.log = Some(File::open(log_of(&self.database))?);
        }
        let log = self.log.as_ref().expect("it was opened");
        // Every time: only the header tells whether the log has begun anew.
        let mut header = [0; 32];
        log.read_exact_at(&mut header, 0)?;
        let (salts, page_bytes) = generation(&header).ok_or(io::ErrorKind::InvalidData)?;
        let mut header = [0; 24];
        log.read_exact_at(&mut header, frame_offset(page_bytes, frames))?;
        Ok(Some(LogPlace { salts, frames, checksum: frame_checksum(&header) }))
    }

    fn write(&mut self, mode: WriteMode) {
        if let Err(error) = self.try_write(mode) {
            self.failed(&error);
        }
    }

    fn try_write(&mut self, mode: WriteMode) -> io::Result<()> {
        if self.file.is_none() {
            let path = mark_of(&self.database);
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false).mode(super::FILE_MODE);
            let file = options.open(path)?;
            self.sequence = newest(&file)?.map_or(0, |(sequence, _)| sequence);
            self.file = Some(file);
        }
        let file = self.file.as_ref().expect("it was opened");
        self.sequence += 1;
        let slot = self.watermark.encode(self.sequence);
        file.write_all_at(&slot, self.sequence % 2 * SLOT_BYTES as u64)?;
        match mode {
            WriteMode::Synced => file.sync_all(),
            WriteMode::Unsynced => Ok(()),
        }
    }

    /// Said once: what is written next may work.
    fn failed(&mut self, error: &io::Error) {
        if !self.has_failed {
            self.has_failed = true;
            let path = mark_of(&self.database);
            tracing::warn!(path = %path.display(), "the watermark of commits cannot be written: {error}");
        }
    }
}

/// Whether a write waits for the disk.
#[derive(Clone, Copy)]
enum WriteMode {
    Synced,
    Unsynced,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watermark(position: u64) -> Watermark {
        Watermark {
            boot: BootId::now(),
            durability: Durability::Full,
            phase: Phase::Serving,
            position,
            head: Some(Checksum([7; 16])),
            log: Some(LogPlace { salts: [1, 2], frames: 30, checksum: [3, 4] }),
            file_counter: 9,
        }
    }

    #[test]
    fn torn_slot_leaves_the_one_before() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("store.sqlite");
        let mut writer = MarkWriter::new(&database, &Examination::default(), Durability::Full);
        for position in 1..=5 {
            writer.watermark = watermark(position);
            writer.write(WriteMode::Unsynced);
            assert_eq!(read_watermark(&database).unwrap(), Some(watermark(position)));
        }
        let path = mark_of(&database);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len(), 2 * SLOT_BYTES);
        for at in 0..whole.len() {
            let mut torn = whole.clone();
            torn[at] ^= 1;
            std::fs::write(&path, torn).unwrap();
            let expected = if at / SLOT_BYTES == 1 { 4 } else { 5 };
            assert_eq!(read_watermark(&database).unwrap(), Some(watermark(expected)), "byte {at}");
        }
        std::fs::write(&path, [0; 2 * SLOT_BYTES]).unwrap();
        assert_eq!(read_watermark(&database).unwrap(), None);
    }

    #[test]
    fn next_writer_goes_on_with_the_sequence() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("store.sqlite");
        for position in 1..=4 {
            let mut writer = MarkWriter::new(&database, &Examination::default(), Durability::Full);
            writer.watermark = watermark(position);
            writer.write(WriteMode::Synced);
            assert_eq!(read_watermark(&database).unwrap(), Some(watermark(position)));
        }
    }

    /// A power loss took acknowledged commits of a relaxed store, as it may: the next process measures nothing by them.
    #[test]
    fn excused_loss_is_no_measure_for_the_next_process() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("store.sqlite");
        let start = |boot, durability| {
            let before = Watermark { boot, durability, ..watermark(500) };
            let examined = Examination { watermark: Some(before), ..Examination::default() };
            MarkWriter::new(&database, &examined, Durability::Full).watermark
        };
        let excused = start(BootId::unknown(), Durability::Relaxed);
        assert_eq!((excused.position, excused.head, excused.log), (0, None, None));
        assert_eq!(start(BootId::unknown(), Durability::Full).position, 500);
        // Of this boot it is all there, but not on the disk yet.
        let killed = start(BootId::now(), Durability::Relaxed);
        assert_eq!((killed.position, killed.durability), (500, Durability::Relaxed));
    }

    #[test]
    fn head_of_another_position_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("store.sqlite");
        let mut writer = MarkWriter::new(&database, &Examination::default(), Durability::Full);
        writer.watermark = watermark(500);
        writer.note(500, None, 0);
        assert!(writer.watermark.head.is_some());
        writer.note(450, None, 0);
        assert_eq!((writer.watermark.position, writer.watermark.head), (450, None));
    }
}
