//! A sync that fails: nothing is acknowledged after it, the store stops, and what was acknowledged before is there.

use std::sync::Arc;

use crash_vfs::{Disk, Fault};
use domain::RecordId;
use engine::EngineError;
use store::Store;
use store_sql::{Durability, SqliteStore};

use crate::on_disk;
use crate::promises::{Promise, broken_promise};
use crate::workshop::Workshop;

const JOBS: usize = 4;
const IMAGES_PER_FAULT: u64 = 3;

/// How far the work came on a disk with a fault.
struct Run {
    store: Arc<SqliteStore>,
    workshop: Workshop,
    promises: Vec<Promise>,
    /// The first refusal.
    refused: Option<EngineError>,
}

/// Works until everything is done or something is refused.
async fn work(disk: &Disk, store: SqliteStore) -> Run {
    let store = Arc::new(store);
    let workshop = Workshop::on(store.clone(), store.newest_fact());
    let mut run = Run { store, workshop, promises: Vec::new(), refused: None };
    for _ in 0..JOBS {
        let ended = run.workshop.whole_job(|made| {
            assert_eq!(disk.faults_fired(), 0, "acknowledged although a sync has failed: {made:?}");
            run.promises.extend(made);
        });
        if let Err(error) = ended.await {
            run.refused = Some(error);
            break;
        }
    }
    run
}

#[tokio::test]
async fn after_any_failed_sync_nothing_is_acknowledged_and_the_store_stops() {
    let undisturbed = Disk::new();
    let store = on_disk::open(&undisturbed, Durability::Full).unwrap();
    let run = work(&undisturbed, store).await;
    assert!(run.refused.is_none());
    let (operations, syncs) = (undisturbed.operations(), undisturbed.log().syncs());
    drop(run);

    let (mut operation, mut stopped, mut not_opened) = (0, 0, 0);
    while operation < operations {
        let disk = Disk::new();
        // The next sync at or after it.
        disk.fail_after(operation, Fault::SyncFails);
        operation += 1;
        // If it fails while the store is opened, there is no store to trust.
        let Ok(store) = on_disk::open(&disk, Durability::Full) else {
            assert_eq!(disk.faults_fired(), 1);
            not_opened += 1;
            continue;
        };
        let run = work(&disk, store).await;
        if disk.faults_fired() == 0 {
            // Only the close, with its own sync, was left.
            assert!(run.refused.is_none());
            continue;
        }
        // The sync that failed was the last operation; the next one comes after it.
        operation = disk.operations();
        check_stopped(&disk, run).await;
        stopped += 1;
    }
    println!(
        "{operations} operations, {syncs} syncs: stopped {stopped} times, not opened {not_opened} times"
    );
    assert!(not_opened > 0);
    assert!(stopped >= 4 * JOBS, "each step has a sync, but the store stopped only {stopped} times");
}

async fn check_stopped(disk: &Disk, run: Run) {
    let refused = run.refused.expect("the step whose sync failed is refused");
    assert_eq!(refused.code(), "outcome_unknown", "{refused}");
    let reason = on_disk::stopped(&run.store).await;
    assert!(!reason.is_empty());
    let at = disk.operations();
    // Healed or not: it is not asked again.
    disk.heal();
    for _ in 0..3 {
        assert_eq!(run.workshop.create(300).await.unwrap_err().code(), "store_unavailable");
        if let Some(RecordId::Job(id)) = run.promises.first().map(Promise::record) {
            assert_eq!(run.workshop.claim(id).await.unwrap_err().code(), "store_unavailable");
            // Reads go on.
            assert!(run.store.load(&id.clone().into()).await.unwrap().is_some());
        }
    }
    assert_eq!(disk.operations(), at, "the disk was written to after a sync had failed");
    for seed in 0..IMAGES_PER_FAULT {
        let left = Disk::from_image(&disk.log().power_lost_at(at, seed));
        let store = on_disk::open(&left, Durability::Full).unwrap();
        let lost = broken_promise(&store, &run.promises).await.unwrap();
        assert!(lost.is_none(), "{lost:?} is lost");
        assert_eq!(on_disk::verified(&left).unwrap().differences, []);
    }
}

#[tokio::test]
async fn write_that_fails_stops_the_store_too() {
    let disk = Disk::new();
    let store = on_disk::open(&disk, Durability::Full).unwrap();
    disk.fail_after(disk.operations(), Fault::WriteFails);
    let run = work(&disk, store).await;
    assert_eq!(disk.faults_fired(), 1);
    check_stopped(&disk, run).await;
}

#[tokio::test]
async fn take_that_its_taker_s_commit_follows_waits_for_no_sync_and_any_other_does() {
    let disk = Disk::new();
    let store = Arc::new(on_disk::open(&disk, Durability::Full).unwrap());
    let workshop = Workshop::on(store.clone(), store.newest_fact());
    let (first, _) = workshop.create(300).await.unwrap();
    let (second, _) = workshop.create(300).await.unwrap();
    let before = disk.log().syncs();
    let (fence, _) = workshop.claim_until_next_commit(&first).await.unwrap();
    assert_eq!(disk.log().syncs(), before);
    workshop.dispatch(&first, &fence).await.unwrap();
    assert_eq!(disk.log().syncs(), before + 1);
    workshop.claim(&second).await.unwrap();
    assert_eq!(disk.log().syncs(), before + 2);
}

#[tokio::test]
async fn commit_that_only_brings_the_agenda_up_to_date_waits_for_no_sync() {
    let disk = Disk::new();
    let store = Arc::new(on_disk::open(&disk, Durability::Full).unwrap());
    let workshop = Workshop::on(store.clone(), store.newest_fact());
    let (id, _) = workshop.create(300).await.unwrap();
    let before = disk.log().syncs();
    workshop.look_at(&id).await.unwrap();
    let (fence, _) = workshop.claim_until_next_commit(&id).await.unwrap();
    assert_eq!(disk.log().syncs(), before);
    workshop.dispatch(&id, &fence).await.unwrap();
    assert_eq!(disk.log().syncs(), before + 1);
}
