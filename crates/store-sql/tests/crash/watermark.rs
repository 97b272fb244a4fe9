//! What kills and power losses leave is never taken for damage: file and log of every image pass the look that comes before SQLite opens them, under the
//! watermark of the last acknowledgement before the crash and under any earlier one.

use crash_vfs::Image;
use store_sql::{
    BootId, Durability, FileHeader, LogContent, LogPlace, LogScan, Phase, Watermark, judge, scan_log,
};

use crate::images::{images_in_all, runtime};
use crate::life::{Life, live};

const IMAGES: usize = 3_000;
const COUNTER: std::ops::Range<usize> = 24..28;
const PAGES: std::ops::Range<usize> = 28..32;

fn log_of(image: &Image, frame: u32) -> LogContent {
    scan_log(image.file("-wal").unwrap_or_default(), frame).unwrap()
}

fn header_of(image: &Image) -> Option<FileHeader> {
    let number = |range: std::ops::Range<usize>| {
        let bytes = image.file(".sqlite")?.get(range)?;
        Some(u32::from_be_bytes(bytes.try_into().unwrap()))
    };
    Some(FileHeader { change_counter: number(COUNTER)?, pages: number(PAGES)? })
}

/// The end of the log in an image.
fn end_of_log(image: &Image) -> Option<LogPlace> {
    let LogContent::Frames(LogScan { valid, .. }) = log_of(image, 0) else { return None };
    let LogContent::Frames(scan) = log_of(image, valid) else { return None };
    scan.checksum.map(|checksum| LogPlace { salts: scan.salts, frames: scan.valid, checksum })
}

/// The watermark that was written when this was acknowledged.
fn watermark(life: &Life, acknowledged_at: usize, boot: BootId) -> Watermark {
    // Commits whose sync was put off are in no watermark.
    let log = end_of_log(&life.log.synced_at(acknowledged_at));
    // The store of these tests has no watermark, and does not raise the counter of its file.
    Watermark {
        boot,
        durability: Durability::Full,
        phase: Phase::Serving,
        position: 1,
        head: None,
        log,
        file_counter: 0,
    }
}

/// What the image is refused for, if it is.
fn refusal(life: &Life, at: usize, image: &Image, boot: BootId) -> Option<String> {
    let by_then = life.count_by(at);
    // That of the last acknowledgement; after a power loss the disk may hold an earlier one.
    for promise in [by_then, by_then / 2] {
        let last = promise.checked_sub(1).map(|last| &life.promises[last]);
        let Some((acknowledged_at, _)) = last else { continue };
        let watermark = watermark(life, *acknowledged_at, boot);
        let frame = watermark.log.map_or(0, |place| place.frames);
        let judged = judge(Some(&watermark), BootId::now(), &log_of(image, frame), header_of(image));
        if let Err(loss) = judged {
            return Some(format!("at operation {at}, acknowledged at {acknowledged_at}: {loss}"));
        }
        if boot != BootId::unknown() {
            break;
        }
    }
    None
}

#[test]
fn no_power_loss_is_taken_for_damage() {
    let life = runtime().block_on(live(Durability::Full));
    let each = images_in_all(IMAGES).div_ceil(life.log.len() + 1) as u64;
    let (mut looked_at, mut gaps) = (0, 0);
    for at in 0..=life.log.len() {
        for seed in 0..each {
            let image = life.log.power_lost_at(at, seed);
            assert_eq!(refusal(&life, at, &image, BootId::unknown()), None);
            looked_at += 1;
            gaps += usize::from(matches!(log_of(&image, 0), LogContent::Frames(scan) if scan.gap.is_some()));
        }
    }
    println!("{looked_at} images, {gaps} with a hole in the log");
    assert!(gaps > 0, "no power loss left what would be damage after a kill: the test shows nothing");
}

#[test]
fn no_kill_is_taken_for_damage() {
    let life = runtime().block_on(live(Durability::Full));
    for at in 0..=life.log.len() {
        assert_eq!(refusal(&life, at, &life.log.killed_at(at), BootId::now()), None);
    }
}
