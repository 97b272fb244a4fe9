//! Counts of jobs: kept by every node in its commits, never counted when asked for.

use domain::attention::Retention;
use domain::job::JobStateName;
use store::{OpenJobs, Store};

use super::database::{Database, soon};
use crate::given::*;
use crate::retirement::retiring;

#[tokio::test]
async fn counts_are_known_without_a_look_at_the_jobs() {
    let database = Database::lived_in().await;
    let store = database.open().await;
    let before = store.job_counts().await.unwrap();
    assert!(before.len() > 2, "{before:?}");
    // Whoever looks at a job now waits until this is over.
    let raw = database.raw().await;
    raw.batch_execute("BEGIN; LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE").await.unwrap();
    assert_eq!(store.job_counts().await.unwrap(), before);
    assert_eq!(store.open_jobs(LANE).await.unwrap(), OpenJobs { of_executor: 4, total: 4 });
    raw.batch_execute("ROLLBACK").await.unwrap();
}

#[tokio::test]
async fn nodes_that_write_at_once_count_together() {
    const NODES: usize = 4;
    const JOBS: usize = 25;
    let database = Database::missing().await;
    let nodes = futures::future::join_all((0..NODES).map(|_| database.open())).await;
    let lives = nodes.iter().enumerate().map(|(node, store)| async move {
        for number in 0..JOBS {
            let id = job(&format!("{node}-{number}"));
            write(store, &id, vec![created()], at(0)).await;
            if number % 2 == 0 {
                write(store, &id, vec![dispatched(1), completed()], at(1)).await;
            }
        }
    });
    soon(futures::future::join_all(lives)).await;
    let done = NODES * JOBS.div_ceil(2);
    let counts =
        [(JobStateName::Queued, (NODES * JOBS - done) as u64), (JobStateName::Completed, done as u64)];
    for node in &nodes {
        assert_eq!(node.job_counts().await.unwrap(), counts);
    }
    assert_eq!(database.verified().await.differences, []);
}

#[tokio::test]
async fn executor_whose_last_job_is_retired_is_counted_no_more() {
    let database = Database::missing().await;
    let store = database.open().await;
    write(&store, &job("a"), vec![created(), dispatched(1), completed()], at(0)).await;
    assert_eq!(database.rows("job_tallies").await, ["(completed,render,1)"]);
    store.commit(retiring(&store, &job("a"), 1).await).await.unwrap();
    assert_eq!(database.rows("job_tallies").await, Vec::<String>::new());
}

#[tokio::test]
async fn wrong_count_is_found_and_mended_by_a_rebuild() {
    let database = Database::lived_in().await;
    let kept = database.rows("job_tallies").await;
    database.tamper("UPDATE job_tallies SET jobs = jobs + 1 WHERE state = 'completed'", 1).await;
    let verified = database.verified().await;
    assert_eq!(verified.differences.len(), 1, "{:?}", verified.differences);
    assert_eq!(verified.differences[0].what, "completed of render: 2 are kept, there are 1");
    database.ledger().await.rebuild(Retention::DEFAULT, at(100)).await.unwrap();
    assert_eq!(database.rows("job_tallies").await, kept);
    assert_eq!(database.verified().await.differences, []);
}
