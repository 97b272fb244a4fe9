//! Operations: those of one job, those that may still run outside, and how much work is open.

use std::sync::Arc;

use domain::{JobId, OperationId, Record};
use store::{OpenJobs, OrphanCursor, Store};

use crate::given::*;
use crate::subject::on_every_store;

fn names(records: &[Arc<Record>]) -> Vec<String> {
    records.iter().map(|record| record.id().as_str().to_owned()).collect()
}

/// Five operations of which three may still run outside: `c` since 20 s, `a` and `e` since 30 s.
async fn three_orphans(store: &dyn Store) {
    for name in ["a", "b", "c", "d", "e"] {
        write(store, &operation(name), vec![accepted(&job("x"), at(9))], at(1)).await;
    }
    write(store, &operation("c"), vec![given_up()], at(20)).await;
    write(store, &operation("e"), vec![given_up()], at(30)).await;
    write(store, &operation("a"), vec![given_up()], at(30)).await;
    write(store, &operation("b"), vec![resolved()], at(31)).await;
}

#[tokio::test]
async fn orphans_are_listed_oldest_end_first_page_by_page() {
    on_every_store(async |store| {
        assert_eq!(store.orphans(None, 10).await, Ok(Vec::new()));
        three_orphans(&*store).await;
        let all = store.orphans(None, 10).await.unwrap();
        assert_eq!(names(&all), ["op-c", "op-a", "op-e"]);
        let mut paged = Vec::new();
        let mut after = None;
        while let Some(record) = store.orphans(after.take(), 1).await.unwrap().pop() {
            let Record::Operation(operation) = &*record else { panic!("a job is no orphan") };
            after = OrphanCursor::of(operation);
            paged.push(record);
        }
        assert_eq!(paged, all);
        let after = OrphanCursor { orphaned_at: at(30), id: OperationId::new("op-e") };
        assert_eq!(store.orphans(Some(after), 10).await, Ok(Vec::new()));
        assert_eq!(store.orphan_count().await, Ok(3));
    })
    .await;
}

#[tokio::test]
async fn orphan_that_is_settled_leaves_the_list() {
    on_every_store(async |store| {
        three_orphans(&*store).await;
        write(&*store, &operation("c"), vec![settled()], at(40)).await;
        assert_eq!(names(&store.orphans(None, 10).await.unwrap()), ["op-a", "op-e"]);
        assert_eq!(store.orphan_count().await, Ok(2));
    })
    .await;
}

#[tokio::test]
async fn operations_of_a_job_are_its_own_newest_change_first() {
    on_every_store(async |store| {
        for (name, of, when) in [("3", "x", 1), ("2", "y", 1), ("1", "x", 2), ("4", "x", 1)] {
            write(&*store, &operation(name), vec![accepted(&job(of), at(9))], at(when)).await;
        }
        let of = async |job: &str, limit| store.operations_of(&JobId::new(job), limit).await.unwrap();
        assert_eq!(names(&of("work-x", 10).await), ["op-1", "op-4", "op-3"]);
        assert_eq!(names(&of("work-x", 1).await), ["op-1"]);
        assert!(of("work-z", 10).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn open_jobs_are_counted_by_executor_whenever_one_begins_to_ask() {
    on_every_store(async |store| {
        let open = async |executor: &str| store.open_jobs(executor).await.unwrap();
        create_jobs(&*store, ["a", "b", "c"].map(str::to_owned)).await;
        let other = created_with(|new| new.spec.executor = Some("press".to_owned()));
        write(&*store, &job("d"), vec![other], at(1)).await;
        write(&*store, &job("e"), vec![created_with(|new| new.spec.executor = None)], at(1)).await;
        write(&*store, &job("a"), vec![dispatched(1), completed()], at(2)).await;
        assert_eq!(open(LANE).await, OpenJobs { of_executor: 2, total: 3 });
        assert_eq!(open("press").await, OpenJobs { of_executor: 1, total: 3 });
        assert_eq!(open("nobody").await, OpenJobs { of_executor: 0, total: 3 });
        write(&*store, &job("b"), vec![dispatched(1), completed()], at(3)).await;
        write(&*store, &job("f"), vec![created()], at(3)).await;
        write(&*store, &job("d"), vec![dispatched(1), lease_lost()], at(3)).await;
        assert_eq!(open(LANE).await, OpenJobs { of_executor: 2, total: 2 });
    })
    .await;
}
