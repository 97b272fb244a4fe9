//! Crashes at every storage operation: with `synchronous=FULL` nothing acknowledged is ever lost. The same
//! check must find losses where SQLite promises less, or it would prove nothing.

use std::collections::HashSet;
use std::env;

use crash_vfs::{Disk, Image, OperationLog};
use rusqlite::Result;

use crate::notebook::{Remains, create_in_wal, remains, write_note};

const NOTES: u32 = 60;
/// Small, so that the WAL is copied back and begun anew several times within one run.
const CHECKPOINT_PAGES: u32 = 20;
/// Images for each operation, unless `LONGHAUL_IMAGES` says how many to check in all.
const IMAGES_PER_OPERATION: usize = 20;

/// What was written, and when each note was acknowledged.
struct History {
    log: OperationLog,
    acknowledgements: Vec<Acknowledgement>,
}

struct Acknowledgement {
    note: u32,
    /// How many operations the disk had recorded by then.
    at: usize,
}

/// What the images of one run showed.
#[derive(Debug, Default)]
struct Findings {
    images: usize,
    lost_acknowledgement: usize,
    broken: usize,
    first_broken: Option<String>,
}

/// Writes the notes and closes the database, so that the last checkpoint is crashed into as well.
fn write_notes(synchronous: &str) -> Result<History> {
    let disk = Disk::new();
    let mut connection = create_in_wal(&disk)?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    let mut acknowledgements = Vec::new();
    for note in 1..=NOTES {
        write_note(&mut connection, note)?;
        acknowledgements.push(Acknowledgement { note, at: disk.operations() });
    }
    drop(connection);
    Ok(History { log: disk.log(), acknowledgements })
}

impl History {
    fn crash_points(&self) -> std::ops::RangeInclusive<usize> {
        0..=self.log.len()
    }

    /// The last note acknowledged when the crash came.
    fn acknowledged_by(&self, at: usize) -> u32 {
        let by_then = self.acknowledgements.iter().filter(|acknowledgement| acknowledgement.at <= at);
        by_then.map(|acknowledgement| acknowledgement.note).max().unwrap_or(0)
    }

    fn after_power_losses(&self) -> Findings {
        let points = self.log.len() + 1;
        let per_point = images_in_all().map_or(IMAGES_PER_OPERATION, |images| images.div_ceil(points));
        let mut findings = Findings::default();
        for at in self.crash_points() {
            let images: Vec<Image> =
                (0..per_point as u64).map(|seed| self.log.power_lost_at(at, seed)).collect();
            findings.images += images.len();
            // Where little was unsynced many seeds agree; the same bytes need no second look.
            for image in images.into_iter().collect::<HashSet<_>>() {
                findings.add(remains(&image), self.acknowledged_by(at));
            }
        }
        findings
    }

    fn after_kills(&self) -> Findings {
        let mut findings = Findings::default();
        for at in self.crash_points() {
            findings.images += 1;
            findings.add(remains(&self.log.killed_at(at)), self.acknowledged_by(at));
        }
        findings
    }
}

impl Findings {
    fn add(&mut self, remains: Remains, acknowledged: u32) {
        match remains {
            Remains::Whole(notes) if notes < acknowledged => self.lost_acknowledgement += 1,
            // The one in flight may have made it.
            Remains::Whole(notes) if notes <= acknowledged + 1 => {}
            Remains::Whole(notes) => self.found_broken(format!("{notes} notes, {acknowledged} acknowledged")),
            Remains::Broken(why) => self.found_broken(why),
        }
    }

    fn found_broken(&mut self, why: String) {
        self.broken += 1;
        self.first_broken.get_or_insert(why);
    }
}

fn images_in_all() -> Option<usize> {
    let images = env::var("LONGHAUL_IMAGES").ok()?;
    Some(images.parse().expect("LONGHAUL_IMAGES is a number"))
}

#[test]
fn full_synchronous_loses_nothing_acknowledged_at_any_power_loss() {
    let history = write_notes("FULL").unwrap();
    assert!(history.log.syncs() > NOTES as usize, "too few syncs to prove anything: {}", history.log.syncs());
    let findings = history.after_power_losses();
    println!("{} writes, {} syncs: {findings:?}", history.log.writes(), history.log.syncs());
    assert!(findings.images > history.log.len());
    assert_eq!((findings.lost_acknowledgement, findings.broken), (0, 0), "{findings:?}");
}

#[test]
fn normal_synchronous_loses_acknowledged_notes_at_a_power_loss_but_breaks_nothing() {
    let findings = write_notes("NORMAL").unwrap().after_power_losses();
    println!("{findings:?}");
    assert!(findings.lost_acknowledgement > 0, "the check cannot see a lost note: {findings:?}");
    assert_eq!(findings.broken, 0, "{findings:?}");
}

#[test]
fn no_synchronous_breaks_the_database_at_a_power_loss() {
    let findings = write_notes("OFF").unwrap().after_power_losses();
    assert!(findings.broken > 0, "the check cannot see a broken database: {findings:?}");
}

#[test]
fn process_kill_loses_nothing_even_where_a_power_loss_would() {
    let findings = write_notes("NORMAL").unwrap().after_kills();
    assert_eq!((findings.lost_acknowledgement, findings.broken), (0, 0), "{findings:?}");
}
