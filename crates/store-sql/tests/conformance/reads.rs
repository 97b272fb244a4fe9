//! Reads: records, lists by cursor, counts, the ledger by record and by position.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::job::JobStateName;
use domain::{JobId, Record, RecordId, RecordKind};
use store::limits::{MAX_CHANGES, MAX_EXAMINED, MAX_FACTS_PER_CHANGE, MAX_PAGE};
use store::{JobFilter, JobQuery, Page, Store};

use crate::given::*;
use crate::subject::on_every_store;

/// The names of the jobs on a page, in their order.
fn names(page: &Page) -> Vec<String> {
    page.jobs.iter().map(|record| record.id().as_str().to_owned()).collect()
}

fn query(filter: JobFilter, limit: usize) -> JobQuery {
    JobQuery { filter, after: None, limit }
}

/// Every page of a list, one after the other.
async fn pages(store: &dyn Store, filter: JobFilter, limit: usize) -> Vec<Page> {
    let mut query = query(filter, limit);
    let mut pages = Vec::new();
    loop {
        let page = store.jobs(query.clone()).await.unwrap();
        let next = page.next.clone();
        pages.push(page);
        match next {
            None => return pages,
            after @ Some(_) => query.after = after,
        }
    }
}

#[tokio::test]
async fn record_that_is_not_there_is_not_found() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        for unknown in [job("b"), operation("a"), job("")] {
            assert_eq!(store.load(&unknown).await, Ok(None));
            assert_eq!(store.facts_of(&unknown, 0, 10).await, Ok(Vec::new()));
        }
    })
    .await;
}

// conforms: L74
#[tokio::test]
async fn record_is_read_as_it_was_committed() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created(), dispatched(1), noted("half")], at(3)).await;
        let committed = next_change(&*store, &job("a"), vec![deferred(&operation("a"))], at(4)).await;
        let accepted = creation(&operation("a"), known_as("r-7", &job("a"), at(9)), at(4));
        let step = commit(vec![committed.clone(), accepted.clone()], at(4));
        store.commit(step).await.unwrap();
        let read = store.load(&job("a")).await.unwrap().unwrap();
        assert_eq!((read.record, read.head.version, read.claim), (committed.record, 4, None));
        let read = store.load(&operation("a")).await.unwrap().unwrap();
        assert_eq!((read.record, read.head.version, read.claim), (accepted.record, 1, None));
        for (fact, seconds) in [(polled(at(40)), 10), (failed_outside(), 40)] {
            let next = next_change(&*store, &operation("a"), vec![fact], at(seconds)).await;
            store.commit(commit(vec![next.clone()], at(seconds))).await.unwrap();
            assert_eq!(store.load(&operation("a")).await.unwrap().unwrap().record, next.record);
        }
    })
    .await;
}

/// Thirty jobs whose fields and states repeat at different rhythms.
async fn thirty_jobs(store: &dyn Store) {
    for number in 0..30_i64 {
        let pick = |what: &str, of: i64| Some(format!("{what}-{}", number % of));
        let fact = created_with(|new| {
            new.spec.owner_peer_id = pick("owner", 2);
            new.spec.created_by_peer_id = pick("creator", 3);
            new.spec.session_id = pick("session", 5);
            new.spec.circle = if number % 7 == 0 { None } else { pick("circle", 2) };
        });
        let facts = match number % 4 {
            0 => vec![fact],
            1 => vec![fact, dispatched(1)],
            2 => vec![fact, dispatched(1), completed()],
            _ => vec![fact, dispatched(1), lease_lost()],
        };
        // Two of a time each.
        write(store, &job(&format!("{number:02}")), facts, START.plus_micros(number / 2)).await;
    }
}

/// Those of the thirty that fit, newest first.
fn expected(fits: impl Fn(i64) -> bool) -> Vec<String> {
    (0..30).rev().filter(|number| fits(*number)).map(|number| format!("work-{number:02}")).collect()
}

#[tokio::test]
async fn jobs_are_listed_newest_change_first_by_every_filter_and_by_all_of_them_together() {
    on_every_store(async |store| {
        thirty_jobs(&*store).await;
        let list = async |filter| names(&store.jobs(query(filter, 100)).await.unwrap());
        let none = JobFilter::default;
        let text = |text: &str| Some(text.to_owned());

        assert_eq!(list(none()).await, expected(|_| true));
        for (state, rest) in [
            (JobStateName::Queued, 0),
            (JobStateName::Dispatching, 1),
            (JobStateName::Completed, 2),
            (JobStateName::Unavailable, 3),
        ] {
            assert_eq!(list(JobFilter { state: Some(state), ..none() }).await, expected(|n| n % 4 == rest));
        }
        assert!(list(JobFilter { state: Some(JobStateName::Blocked), ..none() }).await.is_empty());
        let owner = JobFilter { owner_peer_id: text("owner-1"), ..none() };
        assert_eq!(list(owner.clone()).await, expected(|n| n % 2 == 1));
        let creator = JobFilter { created_by_peer_id: text("creator-2"), ..none() };
        assert_eq!(list(creator).await, expected(|n| n % 3 == 2));
        let session = JobFilter { session_id: text("session-4"), ..none() };
        assert_eq!(list(session).await, expected(|n| n % 5 == 4));
        let circle = JobFilter { circle: text("circle-0"), ..none() };
        assert_eq!(list(circle).await, expected(|n| n % 2 == 0 && n % 7 != 0));
        assert!(list(JobFilter { circle: text("nobody"), ..none() }).await.is_empty());

        let owner_and_state = JobFilter { state: Some(JobStateName::Unavailable), ..owner.clone() };
        assert_eq!(list(owner_and_state).await, expected(|n| n % 2 == 1 && n % 4 == 3));
        let all = JobFilter {
            state: Some(JobStateName::Dispatching),
            created_by_peer_id: text("creator-2"),
            session_id: text("session-2"),
            circle: text("circle-1"),
            ..owner
        };
        assert_eq!(list(all).await, expected(|n| n == 17));
    })
    .await;
}

#[tokio::test]
async fn jobs_are_listed_by_tag_alone_and_with_other_filters() {
    on_every_store(async |store| {
        let tags = ["urgent", "urgently", "an \"urgent\" one", "100%_of!", "URGENT"];
        for number in 0..20_usize {
            let fact = created_with(|new| {
                new.spec.circle = Some(format!("circle-{}", number % 2));
                new.spec.tags = vec![tags[number % 5].to_owned(), format!("number-{number}")];
                // What looks like a tag and is none.
                new.spec.title = "urgent".to_owned();
            });
            let facts = if number % 4 == 0 { vec![fact, dispatched(1)] } else { vec![fact] };
            write(&*store, &job(&format!("{number:02}")), facts, at(u64::try_from(number).unwrap())).await;
        }
        let expected = |fits: &dyn Fn(usize) -> bool| -> Vec<String> {
            (0..20).rev().filter(|number| fits(*number)).map(|number| format!("work-{number:02}")).collect()
        };
        let tagged = |tag: &str| JobFilter { tag: Some(tag.to_owned()), ..JobFilter::default() };
        for (place, tag) in tags.into_iter().enumerate() {
            for limit in [1, 3, 100] {
                let listed = pages(&*store, tagged(tag), limit).await;
                let listed: Vec<String> = listed.iter().flat_map(names).collect();
                assert_eq!(listed, expected(&|number| number % 5 == place), "{tag} in pages of {limit}");
            }
        }
        assert!(names(&store.jobs(query(tagged("urg"), 100)).await.unwrap()).is_empty());
        let of_circle = JobFilter { circle: Some("circle-1".to_owned()), ..tagged("urgent") };
        let listed = names(&store.jobs(query(of_circle, 100)).await.unwrap());
        assert_eq!(listed, expected(&|number| number % 10 == 5));
        let dispatching = JobFilter { state: Some(JobStateName::Dispatching), ..tagged("urgent") };
        let listed = names(&store.jobs(query(dispatching, 100)).await.unwrap());
        assert_eq!(listed, expected(&|number| number % 20 == 0));
    })
    .await;
}

// conforms: L95
#[tokio::test]
async fn jobs_known_outside_are_paged_within_their_circle() {
    on_every_store(async |store| {
        // Two of a time; those of the other circle are newer, and many.
        for number in 0..12_i64 {
            let circle = if number < 5 { "mine" } else { "theirs" };
            let fact = created_with(|new| new.spec.circle = Some(circle.to_owned()));
            let (id, operation) = (job(&format!("{number:02}")), operation(&format!("{number:02}")));
            let when = START.plus_micros(number / 2);
            write(&*store, &id, vec![fact, dispatched(1), deferred(&operation)], when).await;
            write(&*store, &operation, vec![known_as("r-7", &id, at(9))], when).await;
        }
        // A second operation of a job lists it no second time.
        write(&*store, &operation("again"), vec![known_as("r-7", &job("00"), at(9))], at(1)).await;
        write(&*store, &job("over"), vec![created(), dispatched(1), completed()], at(1)).await;
        write(&*store, &operation("over"), vec![known_as("r-7", &job("over"), at(9))], at(1)).await;
        let list = async |id: &str, filter: JobFilter, limit: usize| {
            let mut query = query(filter, limit);
            let mut listed: Vec<String> = Vec::new();
            loop {
                let page = store.jobs_known_as(id, query.clone()).await.unwrap();
                assert!(page.jobs.len() <= limit, "{:?}", names(&page));
                listed.extend(names(&page));
                query.after = page.next;
                if query.after.is_none() {
                    return listed;
                }
            }
        };
        let of_circle = |circle: &str| JobFilter { circle: Some(circle.to_owned()), ..JobFilter::default() };
        let expected = |numbers: std::ops::Range<usize>| -> Vec<String> {
            numbers.rev().map(|number| format!("work-{number:02}")).collect()
        };
        for limit in [1, 2, 3, 5, 100] {
            assert_eq!(list("r-7", of_circle("mine"), limit).await, expected(0..5), "in pages of {limit}");
            assert_eq!(list("r-7", of_circle("theirs"), limit).await, expected(5..12));
            let all = [vec!["work-over".to_owned()], expected(0..12)].concat();
            assert_eq!(list("r-7", JobFilter::default(), limit).await, all);
            let over = JobFilter { state: Some(JobStateName::Completed), ..JobFilter::default() };
            assert_eq!(list("r-7", over, limit).await, ["work-over"]);
        }
        // The first page of one's own circle is full, whatever others have.
        let first = store.jobs_known_as("r-7", query(of_circle("mine"), 2)).await.unwrap();
        assert_eq!((names(&first), first.next.is_some()), (expected(3..5), true));
        assert!(list("r-8", JobFilter::default(), 10).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn pages_follow_each_other_without_gaps_or_doubles_also_among_equal_times() {
    on_every_store(async |store| {
        // All of one time, so that only the id tells them apart.
        let made: Vec<_> = (0..25)
            .map(|number| {
                let fact = created_with(|new| new.spec.circle = Some("press".to_owned()));
                creation(&job(&format!("press-{number:02}")), fact, at(1))
            })
            .collect();
        store.commit(commit(made, at(1))).await.unwrap();
        thirty_jobs(&*store).await;

        let press = JobFilter { circle: Some("press".to_owned()), ..JobFilter::default() };
        let queued = JobFilter { state: Some(JobStateName::Queued), ..JobFilter::default() };
        for filter in [JobFilter::default(), press, queued] {
            let whole = names(&store.jobs(query(filter.clone(), 1_000)).await.unwrap());
            assert!(whole.len() >= 25);
            for limit in [1, 2, 3, 7, 25, 54, 55, 56] {
                let pages = pages(&*store, filter.clone(), limit).await;
                let listed: Vec<String> = pages.iter().flat_map(names).collect();
                assert_eq!(listed, whole, "in pages of {limit}");
                assert!(pages.iter().all(|page| page.jobs.len() <= limit));
                assert_eq!(pages.len(), whole.len().div_ceil(limit));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn page_looks_at_a_bounded_number_of_jobs_and_says_where_to_go_on() {
    on_every_store(async |store| {
        // One of them in a hundred, and the oldest, has ended; all are of one circle.
        let total = MAX_EXAMINED + 400;
        let ended = |number: usize| number == 0 || number % 100 == 99;
        for chunk in (0..total).collect::<Vec<_>>().chunks(MAX_PAGE) {
            let made = chunk.iter().map(|number| {
                let fact = created_with(|new| new.spec.circle = Some("press".to_owned()));
                let facts = if ended(*number) { vec![fact, dispatched(1), completed()] } else { vec![fact] };
                change(&job(&format!("{number:05}")), None, facts, at(0))
            });
            store.commit(commit(made.collect(), at(0))).await.unwrap();
        }
        let completed = JobFilter {
            state: Some(JobStateName::Completed),
            circle: Some("press".to_owned()),
            ..JobFilter::default()
        };
        let expected: Vec<String> = (0..total)
            .rev()
            .filter(|number| ended(*number))
            .map(|number| format!("work-{number:05}"))
            .collect();
        // Short, with where to go on; then the rest.
        let listed = pages(&*store, completed.clone(), MAX_PAGE).await;
        assert_eq!(listed.iter().map(|page| page.jobs.len()).collect::<Vec<_>>(), [50, 5]);
        assert_eq!(listed[0].next.as_ref().unwrap().id.as_str(), "work-00400");
        assert_eq!(listed.iter().flat_map(names).collect::<Vec<_>>(), expected);
        // The same in small pages, of which each is full but the last.
        let listed = pages(&*store, completed, 10).await;
        assert_eq!(listed.iter().flat_map(names).collect::<Vec<_>>(), expected);
        assert!(listed.len() == 6 && listed[..5].iter().all(|page| page.jobs.len() == 10));
        // Nothing fits at all: an empty page, and it goes on.
        let blocked = JobFilter {
            state: Some(JobStateName::Blocked),
            circle: Some("press".to_owned()),
            ..JobFilter::default()
        };
        let listed = pages(&*store, blocked, MAX_PAGE).await;
        assert_eq!(listed.iter().map(|page| page.jobs.len()).collect::<Vec<_>>(), [0, 0]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn list_shows_one_moment_while_jobs_change_their_states() {
    on_every_store(async |store| {
        let made = create_jobs(&*store, (0..12).map(|number| format!("{number:02}"))).await;
        let changing = tokio::spawn({
            let store = store.share();
            async move {
                for round in 1..=20 {
                    for id in &made {
                        let fact = if round % 2 == 1 { dispatched(round) } else { lease_lost() };
                        write(&*store, id, vec![fact], at(u64::from(round))).await;
                    }
                }
            }
        });
        while !changing.is_finished() {
            let page = store.jobs(query(JobFilter::default(), 100)).await.unwrap();
            let listed: BTreeSet<RecordId> = page.jobs.iter().map(|record| record.id()).collect();
            assert_eq!((listed.len(), page.jobs.len()), (12, 12), "{:?}", names(&page));
            assert!(page.jobs.is_sorted_by_key(|record| std::cmp::Reverse(place(record))));
        }
        changing.await.unwrap();
    })
    .await;
}

fn place(record: &Record) -> (domain::Timestamp, JobId) {
    let Record::Job(job) = record else { panic!("{record:?} is among the jobs") };
    (job.updated_at, job.id.clone())
}

#[tokio::test]
async fn no_read_and_no_take_gives_more_than_a_thousand_rows() {
    on_every_store(async |store| {
        let many: Vec<_> =
            (0..=MAX_PAGE).map(|number| creation(&job(&format!("{number:04}")), created(), at(0))).collect();
        assert!(many.len() <= MAX_CHANGES);
        store.commit(commit(many, at(0))).await.unwrap();
        for _ in 0..=MAX_PAGE / MAX_FACTS_PER_CHANGE {
            let notes = (0..MAX_FACTS_PER_CHANGE).map(|_| noted("again")).collect();
            write(&*store, &job("0000"), notes, at(0)).await;
        }

        for limit in [MAX_PAGE, MAX_PAGE + 1, usize::MAX] {
            let page = store.jobs(query(JobFilter::default(), limit)).await.unwrap();
            assert_eq!(page.jobs.len(), MAX_PAGE);
            assert!(page.next.is_some());
            assert_eq!(store.facts_after(0, limit).await.unwrap().len(), MAX_PAGE);
            assert_eq!(store.facts_of(&job("0000"), 0, limit).await.unwrap().len(), MAX_PAGE);
        }
        let ready = store.take_ready(LANE.into(), take("node-a", at(1), usize::MAX)).await.unwrap();
        assert_eq!(ready.len(), MAX_PAGE);
        taken(&*store, &job("1000"), "node-a", at(1)).await;
        let due = store.take_due(RecordKind::Job, take("node-b", at(61), usize::MAX)).await.unwrap();
        assert_eq!(due.len(), MAX_PAGE);
    })
    .await;
}

#[tokio::test]
async fn counts_tell_how_many_jobs_are_in_each_state() {
    on_every_store(async |store| {
        assert_eq!(store.job_counts().await, Ok(Vec::new()));
        thirty_jobs(&*store).await;
        write(&*store, &operation("a"), vec![accepted(&job("00"), at(9))], at(1)).await;
        let counts = [
            (JobStateName::Queued, 8),
            (JobStateName::Dispatching, 8),
            (JobStateName::Completed, 7),
            (JobStateName::Unavailable, 7),
        ];
        assert_eq!(store.job_counts().await, Ok(counts.to_vec()));
    })
    .await;
}

#[tokio::test]
async fn fact_is_read_with_all_that_was_written_about_it() {
    on_every_store(async |store| {
        let first = change(&job("a"), None, vec![created(), dispatched(1)], at(1));
        let mut step = commit(vec![first.clone()], at(1));
        step.actor = Arc::from("token:ada");
        step.causation_id = Some(Arc::from("event-7"));
        step.correlation_id = Some(Arc::from("order-9"));
        store.commit(step).await.unwrap();
        write(&*store, &job("a"), vec![completed()], at(2)).await;

        let facts = store.facts_of(&job("a"), 0, 10).await.unwrap();
        assert_eq!(facts.iter().map(|fact| fact.version).collect::<Vec<_>>(), [1, 2, 3]);
        for (read, written) in facts.iter().zip(&first.facts) {
            assert_eq!((read.id, &read.fact, &read.stream), (written.id, &written.fact, &job("a")));
            assert_eq!((read.at, &*read.actor), (at(1), "token:ada"));
            assert_eq!(read.causation_id.as_deref(), Some("event-7"));
            assert_eq!(read.correlation_id.as_deref(), Some("order-9"));
        }
        assert_eq!((facts[2].at, facts[2].causation_id.as_ref()), (at(2), None));
        assert_eq!(store.facts_of(&job("a"), 1, 10).await.unwrap(), facts[1..]);
        assert_eq!(store.facts_of(&job("a"), 1, 1).await.unwrap(), facts[1..2]);
        assert!(store.facts_of(&job("a"), 3, 10).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ledger_is_read_in_the_order_of_commits() {
    on_every_store(async |store| {
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..8 {
            let store = store.share();
            tasks.spawn(async move {
                let mut acknowledged = Vec::new();
                for number in 0..10 {
                    let id = job(&format!("{task}-{number}"));
                    let position = write(&*store, &id, vec![created(), dispatched(1)], at(0)).await.position;
                    acknowledged.push((position, id));
                }
                acknowledged
            });
        }
        let acknowledged = tasks.join_all().await;
        // Each caller had its answer before it asked for more: its positions rise.
        assert!(acknowledged.iter().all(|of_one| of_one.is_sorted()));

        let all = store.facts_after(0, 1_000).await.unwrap();
        assert_eq!(all.iter().map(|fact| fact.position).collect::<Vec<_>>(), (1..=160).collect::<Vec<_>>());
        for (position, id) in acknowledged.into_iter().flatten() {
            let last = &all[usize::try_from(position).unwrap() - 1];
            assert_eq!((&last.stream, last.version), (&id, 2));
        }
        let mut paged = Vec::new();
        while let Some(page) = Some(store.facts_after(paged.len() as u64, 7).await.unwrap())
            && !page.is_empty()
        {
            paged.extend(page);
        }
        assert_eq!(paged, all);
        assert!(store.facts_after(160, 10).await.unwrap().is_empty());
        assert!(store.facts_after(u64::MAX, 10).await.unwrap().is_empty());
    })
    .await;
}
