//! The counts of jobs: kept by the writer after the first question, and equal to what a new count of the file finds.

use std::sync::Arc;

use domain::job::JobStateName;
use store::Store;

use super::file::File;
use crate::given::*;

const JOBS: usize = 60;
const RACES: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_written_while_the_file_is_counted_is_counted_once() {
    for race in 0..RACES {
        let file = File::missing();
        let store = Arc::new(file.open());
        let writing = tokio::spawn({
            let store = store.clone();
            async move {
                for number in 0..JOBS {
                    write(&*store, &job(&format!("{number:02}")), vec![created()], at(1)).await;
                }
            }
        });
        // A little later each time, so that the question falls into the middle of the writing.
        for _ in 0..race {
            tokio::task::yield_now().await;
        }
        store.job_counts().await.unwrap();
        writing.await.unwrap();
        assert_eq!(store.job_counts().await, Ok(vec![(JobStateName::Queued, JOBS as u64)]), "race {race}");
    }
}

#[tokio::test]
async fn counts_that_were_kept_equal_a_new_count_of_the_file() {
    let file = File::lived_in().await;
    let store = file.open();
    store.job_counts().await.unwrap();
    write(&store, &job("new"), vec![created()], at(100)).await;
    write(&store, &job("new"), vec![dispatched(1)], at(101)).await;
    write(&store, &job("lost"), vec![noted("still here")], at(102)).await;
    let kept = store.job_counts().await;
    drop(store);
    assert_eq!(kept, file.open().job_counts().await);
}
