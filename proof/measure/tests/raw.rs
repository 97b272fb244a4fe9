//! What stands beside every figure must be the same work: as many rows in every table as our own run left.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use measure::cycle::{self, Until};
use measure::fill;
use measure::raw::{self, Pattern};
use measure::site::{Ground, Site};
use store_sql::Durability;

const JOBS: usize = 40;
const TABLES: [&str; 6] = ["facts", "jobs", "agenda", "bodies", "operations", "records"];

fn ground(dir: &tempfile::TempDir) -> Ground {
    let nowhere = dir.path().join("longhaul");
    Ground::new(nowhere, dir.path().to_owned(), None, Arc::new(AtomicBool::new(false)))
        .expect("there is room")
}

/// Jobs through the core.
fn run(ground: &Ground, site: &Site<'_>, jobs: usize) {
    let opened = site.open(Durability::Full).expect("it is ours");
    ground.runtime.block_on(cycle::until(opened.store(), 8, Until::Jobs(jobs))).expect("they are done");
    opened.close(ground);
}

fn rows(site: &Site<'_>) -> Vec<i64> {
    TABLES.map(|table| count(site, &format!("SELECT count(*) FROM {table}"))).into()
}

fn count(site: &Site<'_>, statement: &str) -> i64 {
    site.books().expect("it is there").number(statement).expect("it is a number")
}

/// The pattern of one job of the core.
fn pattern(ground: &Ground) -> Pattern {
    let site = ground.site().expect("there is room");
    run(ground, &site, 1);
    Pattern::since(&site.books().expect("it is there"), 0).expect("a job was done")
}

#[test]
fn raw_database_writes_as_many_rows_as_we_do_and_leaves_every_job_completed_and_nothing_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let ground = ground(&dir);
    let ours = ground.site().unwrap();
    run(&ground, &ours, JOBS);
    let completed = "SELECT count(*) FROM jobs WHERE state = 'completed'";
    let to_do = "SELECT count(*) FROM agenda WHERE ready = 1 OR held = 1";
    for facts_per_transaction in [1.0, 2.0, 7.0, 1_000.0] {
        let other = ground.site().unwrap();
        let written = raw::write(&other, &pattern(&ground), JOBS, facts_per_transaction).unwrap();
        assert!(written.per_second > 0.0 && written.bytes_each > 0.0);
        assert_eq!(rows(&other), rows(&ours), "{TABLES:?}, {facts_per_transaction} facts a transaction");
        assert_eq!((count(&other, completed), count(&other, to_do)), (40, 0));
    }
}

#[test]
fn store_goes_on_beside_rows_that_were_written_behind_its_back() {
    let dir = tempfile::tempdir().unwrap();
    let ground = ground(&dir);
    let site = ground.site().unwrap();
    assert_eq!(fill::finished(&site, JOBS).unwrap().len(), JOBS);
    for _ in 0..2 {
        run(&ground, &site, JOBS);
        raw::write(&site, &pattern(&ground), JOBS, 9.0).unwrap();
    }
    // Filled once, run twice, written twice: three facts and two bodies for each job.
    assert_eq!(rows(&site)[..4], [15, 5, 5, 10].map(|times| times * 40));
}
