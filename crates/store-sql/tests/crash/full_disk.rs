//! A full disk: new work is refused by name, reads go on, and writing resumes when space returns.

use std::sync::Arc;

use crash_vfs::{Disk, Fault};
use domain::Timestamp;
use domain::attention::Retention;
use store::{JobQuery, Store};
use store_sql::{Durability, rebuild};

use crate::on_disk;
use crate::promises::broken_promise;
use crate::workshop::Workshop;

async fn ledger(store: &dyn Store) -> Vec<store::StoredFact> {
    store.facts_after(0, 1_000).await.unwrap()
}

#[tokio::test]
async fn commits_are_refused_reads_go_on_and_work_resumes_when_space_returns() {
    let disk = Disk::new();
    let store = Arc::new(on_disk::open(&disk, Durability::Full).unwrap());
    let workshop = Workshop::on(store.clone(), store.newest_fact());
    let mut promises = Vec::new();
    workshop.whole_job(|made| promises.extend(made)).await.unwrap();
    let (open, made) = workshop.create(300).await.unwrap();
    promises.extend(made);
    let (mut refused, mut passed) = (0, 0);
    // The disk is full from any operation of a commit on.
    for free in 0..60 {
        let before = ledger(&*store).await;
        disk.fail_after(disk.operations() + free, Fault::DiskFull);
        match workshop.create(5_000).await {
            Ok((_, made)) => {
                promises.extend(made);
                passed += 1;
            }
            Err(error) => {
                assert_eq!(error.code(), "store_full", "with {free} free");
                assert_eq!(ledger(&*store).await, before);
                // Claims are refused alike.
                assert_eq!(workshop.claim(&open).await.unwrap_err().code(), "store_full");
                assert_eq!(workshop.create(1).await.unwrap_err().code(), "store_full");
                refused += 1;
            }
        }
        let listed = store.jobs(JobQuery { limit: 1_000, ..JobQuery::default() }).await.unwrap().jobs.len();
        assert_eq!(listed, 2 + free + passed);
        disk.heal();
        // Without reopening anything.
        let (_, made) = workshop.create(300).await.unwrap();
        promises.extend(made);
    }
    assert!(refused > 10 && passed > 10, "{refused} refused, {passed} passed");
    assert!(disk.faults_fired() > refused);

    let left = Disk::from_image(&disk.log().power_lost_at(disk.operations(), 1));
    let store = on_disk::open(&left, Durability::Full).unwrap();
    assert!(broken_promise(&store, &promises).await.unwrap().is_none());
    assert_eq!(on_disk::verified(&left).unwrap().differences, []);
}

#[tokio::test]
async fn store_on_a_full_disk_is_opened_and_read() {
    let disk = Disk::new();
    let mut promises = Vec::new();
    {
        let store = Arc::new(on_disk::open(&disk, Durability::Full).unwrap());
        let workshop = Workshop::on(store.clone(), store.newest_fact());
        workshop.whole_job(|made| promises.extend(made)).await.unwrap();
    }
    disk.fail_after(disk.operations(), Fault::DiskFull);
    let store = Arc::new(on_disk::open(&disk, Durability::Full).unwrap());
    assert!(broken_promise(&*store, &promises).await.unwrap().is_none());
    let workshop = Workshop::on(store.clone(), store.newest_fact());
    assert_eq!(workshop.create(1).await.unwrap_err().code(), "store_full");
    disk.heal();
    workshop.create(1).await.unwrap();
    assert!(broken_promise(&*store, &promises).await.unwrap().is_none());
}

#[tokio::test]
async fn rebuild_on_a_full_disk_is_told_as_full_and_changes_nothing() {
    let disk = Disk::new();
    {
        let store = Arc::new(on_disk::open(&disk, Durability::Full).unwrap());
        let workshop = Workshop::on(store.clone(), store.newest_fact());
        workshop.whole_job(|_| {}).await.unwrap();
        workshop.create(300).await.unwrap();
    }
    let mut connection = on_disk::connect(&disk).unwrap();
    disk.fail_after(disk.operations(), Fault::DiskFull);
    let refused = rebuild(&mut connection, Retention::DEFAULT, Timestamp::default()).unwrap_err();
    assert_eq!(refused.code(), "store_full");
    disk.heal();
    assert_eq!(on_disk::verified(&disk).unwrap().differences, []);
    assert!(rebuild(&mut connection, Retention::DEFAULT, Timestamp::default()).unwrap().records > 1);
    assert_eq!(on_disk::verified(&disk).unwrap().differences, []);
}
