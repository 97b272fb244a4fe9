//! A database whose disk is full: work is refused, reads go on, and work is taken again when there is room.
//!
//! The disk is real: a small one in memory, mounted for the test, with the tablespace of the database on it.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use test_postgres::Cluster;

use crate::disk::Disk;
use crate::given::{Daemon, create, expect, longhaul, show, stderr};
use crate::refused_databases::{number, on, refused, serve, sql};

const SIZE: &str = "40m";
/// Of so many jobs one finds no room in the pages that are there.
const MOST_JOBS: usize = 2_000;

/// Takes all of its room.
pub fn fill(disk: &Disk) -> PathBuf {
    let path = disk.path().join("filler");
    let mut filler = File::create(&path).expect("it is writable");
    while filler.write_all(&[7; 4_096]).is_ok() {}
    path
}

#[test]
fn full_database_refuses_work_serves_reads_and_takes_work_again_when_there_is_room() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), Disk::mount(SIZE));
    let cluster = Cluster::start();
    let space = disk.path().join("space");
    std::fs::create_dir(&space).unwrap();
    cluster.give(disk.path());
    cluster.give(&space);
    sql(&cluster.address(), &format!("CREATE TABLESPACE small LOCATION '{}'", space.display()));
    sql(&cluster.address(), "CREATE DATABASE work TABLESPACE small");
    let database = cluster.address().replace("/postgres", "/work");
    sql(&database, "CREATE SCHEMA other");

    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch", "--database", &database]);
    let id = create(dir.path(), &["kept"]);
    let filler = fill(&disk);

    // A store cannot be made there, and nothing of it stays.
    let elsewhere = tempfile::tempdir().unwrap();
    let other = format!("{database}?options=-c%20search_path%3Dother");
    refused(&serve(elsewhere.path(), &other), "database_full", "make room");
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'other'";
    assert_eq!(number(&database, tables), 0);

    let input = format!("\"{}\"", "x".repeat(60_000));
    let mut accepted = 1;
    let told = loop {
        let created = longhaul(dir.path(), &["jobs", "create", "more", "--input", &input]);
        if !created.status.success() {
            break created;
        }
        accepted += 1;
        assert!(accepted < MOST_JOBS, "it was never full");
    };
    expect(1, &told);
    assert!(stderr(&told).contains("full"), "{}", stderr(&told));
    assert_eq!(show(dir.path(), &id)["state"], "queued");

    std::fs::remove_file(filler).unwrap();
    create(dir.path(), &["accepted again"]);
    let verified = expect(0, &on(&database, &["verify"]));
    assert!(verified.contains(" 0 differences"), "{verified}");
    assert_eq!(number(&database, "SELECT count(*) FROM jobs"), i64::try_from(accepted).unwrap() + 1);
}
