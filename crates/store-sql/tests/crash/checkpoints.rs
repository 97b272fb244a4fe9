//! The store's own checkpoints, which come when the log has grown: crashed into, and with a sync that fails.

use std::sync::Arc;

use crash_vfs::{Disk, Fault};
use engine::EngineError;
use store_sql::{Durability, SqliteStore};

use crate::on_disk;
use crate::promises::{Promise, broken_promise};
use crate::workshop::Workshop;

/// Seventeen of these are more than the log may hold before it is moved into the file whatever the writer does; the others come meanwhile.
const LARGE: usize = 1_000_000;
const JOBS: usize = 30;
const POINTS: usize = 40;

/// Jobs with large inputs, as far as they were acknowledged.
struct Run {
    store: Arc<SqliteStore>,
    workshop: Workshop,
    /// What was promised, and how many operations the disk had recorded by then.
    promises: Vec<(usize, Promise)>,
    refused: Option<EngineError>,
}

async fn create_large(disk: &Disk, store: SqliteStore) -> Run {
    let store = Arc::new(store);
    let workshop = Workshop::on(store.clone(), store.newest_fact());
    let mut run = Run { store, workshop, promises: Vec::new(), refused: None };
    for _ in 0..JOBS {
        match run.workshop.create(LARGE).await {
            Ok((_, made)) => {
                run.promises.extend(made.into_iter().map(|promise| (disk.operations(), promise)));
            }
            Err(error) => {
                run.refused = Some(error);
                break;
            }
        }
    }
    run
}

async fn check_left(left: &Disk, promises: impl Iterator<Item = &Promise>) {
    let store = on_disk::open(left, Durability::Full).unwrap();
    let lost = broken_promise(&store, promises).await.unwrap();
    assert!(lost.is_none(), "{lost:?} is lost");
    assert_eq!(on_disk::verified(left).unwrap().differences, []);
}

#[tokio::test]
async fn power_loss_during_a_checkpoint_takes_nothing() {
    let disk = Disk::new();
    let run = create_large(&disk, on_disk::open(&disk, Durability::Full).unwrap()).await;
    let Run { store, workshop, promises, refused } = run;
    assert!(refused.is_none());
    // Closing ends what was begun, and moves the rest into the file.
    drop((workshop, store));
    let log = disk.log();
    // From before the one that makes the log too long.
    let from = promises[promises.len() / 2].0;
    for point in 0..=POINTS {
        let at = from + (log.len() - from) * point / POINTS;
        let left = Disk::from_image(&log.power_lost_at(at, point as u64));
        let promised = promises.iter().filter(|(when, _)| *when <= at).map(|(_, promise)| promise);
        check_left(&left, promised).await;
    }
}

#[tokio::test]
async fn sync_that_fails_in_a_checkpoint_stops_the_store_and_takes_nothing() {
    let undisturbed = Disk::new();
    let run = create_large(&undisturbed, on_disk::open(&undisturbed, Durability::Full).unwrap()).await;
    let half = run.promises[run.promises.len() / 2].0;
    drop(run);
    let to_the_end = undisturbed.operations() - half;

    let (mut in_a_commit, mut in_a_checkpoint) = (0, 0);
    for point in 0..POINTS {
        let disk = Disk::new();
        let store = on_disk::open(&disk, Durability::Full).unwrap();
        disk.fail_after(half + to_the_end * point / POINTS, Fault::SyncFails);
        let run = create_large(&disk, store).await;
        match run.refused.as_ref().map(EngineError::code) {
            Some("outcome_unknown") => in_a_commit += 1,
            // Refused for what had happened elsewhere, or not refused at all so far.
            Some("store_unavailable") => in_a_checkpoint += 1,
            None if disk.faults_fired() > 0 => in_a_checkpoint += 1,
            // Only the close was left to fail.
            None => continue,
            Some(other) => panic!("{other}"),
        }
        on_disk::stopped(&run.store).await;
        assert_eq!(disk.faults_fired(), 1);
        assert_eq!(run.workshop.create(1).await.unwrap_err().code(), "store_unavailable");
        let left = Disk::from_image(&disk.log().power_lost_at(disk.operations(), point as u64));
        check_left(&left, run.promises.iter().map(|(_, promise)| promise)).await;
    }
    println!("{in_a_commit} failed in a commit, {in_a_checkpoint} in a checkpoint");
    assert!(in_a_commit > 0 && in_a_checkpoint > 0, "{in_a_commit}, {in_a_checkpoint}");
}
