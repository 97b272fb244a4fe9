//! Upgrades cut short: a file of the oldest schema with views of an older format is opened, and that is ended at every operation
//! by a kill, a power loss, a full disk or a failed sync. The next open brings it up to date with everything in it.

use std::sync::Mutex;

use crash_vfs::{Disk, Fault, Image};
use store_sql::{Durability, SCHEMA_VERSION, migrate_to};

use crate::images::{images_in_all, runtime};
use crate::life::live;
use crate::on_disk;
use crate::promises::{Promise, broken_promise};

const OLDEST: i64 = 1;
const IMAGES: usize = 2_000;
const THREADS: usize = 2;

/// A file that an older longhaul left, and what it had promised.
struct Old {
    image: Image,
    promises: Vec<Promise>,
    records: u64,
    schema: Vec<String>,
}

impl Old {
    fn with_a_life_in_it() -> Self {
        let life = runtime().block_on(live(Durability::Full));
        let end = life.log.len();
        let disk = Disk::from_image(&life.log.killed_at(end));
        drop(on_disk::open(&disk, Durability::Full).unwrap());
        let (schema, records) = (schema(&disk), on_disk::verified(&disk).unwrap().records);
        assert!(records >= 20, "{records} records are too few");
        let mut connection = on_disk::connect(&disk).unwrap();
        migrate_to(&mut connection, OLDEST).unwrap();
        // Of a format that nobody can read any more: what is served afterwards was written anew.
        connection
            .execute_batch(
                "UPDATE meta SET value = 0 WHERE name = 'view_format'; UPDATE jobs SET view = '{}'",
            )
            .unwrap();
        drop(connection);
        let image = disk.log().killed_at(disk.operations());
        Self { image, promises: life.promised_by(end).cloned().collect(), records, schema }
    }

    /// Opens what was left behind as the next start would, and looks at everything.
    fn check(&self, left: &Disk, how: &str) {
        let store = on_disk::open(left, Durability::Full).unwrap_or_else(|error| panic!("{how}: {error}"));
        let lost = runtime().block_on(broken_promise(&store, &self.promises)).unwrap();
        assert!(lost.is_none(), "{how}: {lost:?} is lost");
        drop(store);
        assert_eq!(schema(left), self.schema, "{how}");
        let verified = on_disk::verified(left).unwrap();
        assert_eq!(verified.differences, [], "{how}");
        assert_eq!(verified.records, self.records, "{how}");
    }
}

/// Everything that migrations make, and their number.
fn schema(disk: &Disk) -> Vec<String> {
    let connection = on_disk::connect(disk).unwrap();
    let number: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(number, SCHEMA_VERSION);
    let mut statement = connection
        .prepare("SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
        .unwrap();
    let made = statement.query_map([], |row| row.get(0)).unwrap();
    made.collect::<Result<_, _>>().unwrap()
}

/// Whether a disk still holds what an older longhaul left, or the last migration was done.
fn number_at(image: &Image) -> i64 {
    let connection = on_disk::connect(&Disk::from_image(image)).unwrap();
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn upgrade_that_is_killed_or_loses_its_power_at_any_operation_is_finished_by_the_next_start() {
    let old = &Old::with_a_life_in_it();
    let disk = Disk::from_image(&old.image);
    drop(on_disk::open(&disk, Durability::Full).unwrap());
    let log = &disk.log();
    let losses = images_in_all(IMAGES).div_ceil(log.len() + 1) as u64;
    let cut_at = &Mutex::new(std::collections::BTreeSet::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for at in (thread..=log.len()).step_by(THREADS) {
                    let killed = log.killed_at(at);
                    cut_at.lock().unwrap().insert(number_at(&killed));
                    old.check(&Disk::from_image(&killed), &format!("killed at {at}"));
                    for seed in 0..losses {
                        let left = Disk::from_image(&log.power_lost_at(at, seed));
                        old.check(&left, &format!("no power at {at}, seed {seed}"));
                    }
                }
            });
        }
    });
    println!("{} operations, each killed once and without power {losses} times", log.len());
    // It was ended before and after each migration, not only around the first.
    let every: Vec<i64> = (OLDEST..=SCHEMA_VERSION).collect();
    assert_eq!(cut_at.lock().unwrap().iter().copied().collect::<Vec<_>>(), every);
}

#[test]
fn upgrade_that_the_disk_ends_at_any_operation_is_finished_by_the_next_start() {
    let old = Old::with_a_life_in_it();
    for fault in [Fault::DiskFull, Fault::SyncFails] {
        let mut refused = 0;
        for operations in 0.. {
            let disk = Disk::from_image(&old.image);
            disk.fail_after(operations, fault);
            let opened = on_disk::open(&disk, Durability::Full);
            if disk.faults_fired() == 0 {
                assert!(opened.is_ok());
                break;
            }
            refused += u32::from(opened.is_err());
            drop(opened);
            disk.heal();
            let left = Disk::from_image(&disk.log().killed_at(disk.operations()));
            old.check(&left, &format!("{fault:?} from {operations} on"));
        }
        println!("{fault:?}: refused {refused} times");
        assert!(refused > 10, "{fault:?}: refused {refused} times");
    }
}
