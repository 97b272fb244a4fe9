//! Limits: what is at one passes, what is over one is refused as `too_large` and changes nothing.

use std::sync::Arc;

use domain::attention::Retention;
use domain::job::{
    Details, JobCommand, JobStateName, NewJob, Report, Reporter, ResultRefs, Retryable, SubmitWord,
};
use domain::limits::{
    MAX_BODIES, MAX_BODY_BYTES, MAX_ID_BYTES, MAX_LABEL_BYTES, MAX_NOTE_BYTES, MAX_PROGRESS_BYTES,
    MAX_SUMMARY_BYTES, MAX_TAGS, MAX_TITLE_BYTES,
};
use domain::{BodyName, BodyRef, Command, Digest, Jitter, JobId, Json, RecordId};
use engine::{Engine, ManualClock, Order, RandomIds};
use store::limits::{
    MAX_ANSWER_BYTES, MAX_BODY_BYTES_PER_COMMIT, MAX_CHANGES, MAX_CONTEXT_TEXT_BYTES, MAX_FACT_BYTES,
    MAX_FACTS_PER_CHANGE, MAX_KEY_TEXT_BYTES, MAX_KEYS,
};
use store::{Commit, IdempotencyKey, NewBody, Removal, Store, encode_fact};

use crate::given::*;
use crate::subject::{Subject, on_every_store};

/// Commits what is over the limit, then what is at it.
async fn check(store: &dyn Store, at_limit: Commit, over: Commit) {
    let before = sight(store).await;
    let first = over.changes[0].id.clone();
    let refused = store.commit(over).await.unwrap_err();
    assert_eq!(refused.code(), "too_large", "{refused}");
    assert_eq!(sight(store).await, before);
    assert_eq!(store.load(&first).await, Ok(None));
    store.commit(at_limit).await.unwrap();
}

fn creations(count: usize) -> Commit {
    commit((0..count).map(|number| creation(&job(&format!("{number}")), created(), at(0))).collect(), at(0))
}

#[tokio::test]
async fn records_in_one_commit_are_bounded() {
    on_every_store(async |store| {
        check(&*store, creations(MAX_CHANGES), creations(MAX_CHANGES + 1)).await;
    })
    .await;
}

#[tokio::test]
async fn facts_on_one_record_in_one_commit_are_bounded() {
    on_every_store(async |store| {
        let noting = |count: usize| {
            let facts = std::iter::once(created()).chain((1..count).map(|_| noted("again"))).collect();
            commit(vec![change(&job("a"), None, facts, at(0))], at(0))
        };
        check(&*store, noting(MAX_FACTS_PER_CHANGE), noting(MAX_FACTS_PER_CHANGE + 1)).await;
    })
    .await;
}

#[tokio::test]
async fn one_fact_is_bounded() {
    on_every_store(async |store| {
        let titled = |bytes: usize| created_with(|new| new.spec.title = "x".repeat(bytes));
        let around = encode_fact(&titled(1)).len() - 1;
        let creating = |bytes: usize| commit(vec![creation(&job("a"), titled(bytes - around), at(0))], at(0));
        check(&*store, creating(MAX_FACT_BYTES), creating(MAX_FACT_BYTES + 1)).await;
    })
    .await;
}

fn with_bodies(sizes: &[usize]) -> Commit {
    let mut change = creation(&job("a"), created(), at(0));
    // Only the sizes matter; digests tell the bodies apart.
    change.bodies = (0_u8..)
        .zip(sizes)
        .map(|(number, size)| NewBody {
            body: BodyRef { name: BodyName::Result, sha256: Digest([number; 32]), size: *size as u64 },
            bytes: vec![number; *size].into(),
        })
        .collect();
    commit(vec![change], at(0))
}

#[tokio::test]
async fn one_body_is_bounded() {
    on_every_store(async |store| {
        check(&*store, with_bodies(&[MAX_BODY_BYTES]), with_bodies(&[1, MAX_BODY_BYTES + 1])).await;
    })
    .await;
}

#[tokio::test]
async fn bodies_in_one_commit_are_bounded() {
    on_every_store(async |store| {
        let most = MAX_BODY_BYTES_PER_COMMIT / MAX_BODY_BYTES;
        let at_limit = vec![MAX_BODY_BYTES; most];
        let over = [at_limit.clone(), vec![1]].concat();
        check(&*store, with_bodies(&at_limit), with_bodies(&over)).await;
    })
    .await;
}

#[tokio::test]
async fn stored_answer_is_bounded() {
    on_every_store(async |store| {
        let answering = |bytes: usize| {
            let mut step = commit(vec![creation(&job("a"), created(), at(0))], at(0));
            step.keys = vec![kept(key("k"), &job("a"), &vec![b'x'; bytes])];
            step
        };
        check(&*store, answering(MAX_ANSWER_BYTES), answering(MAX_ANSWER_BYTES + 1)).await;
        assert_eq!(store.key(&key("k")).await.unwrap().unwrap().answer.len(), MAX_ANSWER_BYTES);
    })
    .await;
}

#[tokio::test]
async fn keys_in_one_commit_are_bounded() {
    on_every_store(async |store| {
        let with_keys = |count: usize| {
            let mut step = creations(1);
            step.keys = (0..count).map(|number| kept(key(&format!("{number}")), &job("0"), b"")).collect();
            step
        };
        check(&*store, with_keys(MAX_KEYS), with_keys(MAX_KEYS + 1)).await;
    })
    .await;
}

#[tokio::test]
async fn every_text_of_a_key_is_bounded() {
    const TEXTS: [fn(String) -> IdempotencyKey; 3] = [
        |text| IdempotencyKey { principal: text, ..key("a") },
        |text| IdempotencyKey { route: text, ..key("b") },
        |text| key(&text),
    ];
    on_every_store(async |store| {
        for (number, with_text) in TEXTS.iter().enumerate() {
            let id = job(&format!("{number}"));
            let creating = |bytes: usize| {
                let mut step = commit(vec![creation(&id, created(), at(0))], at(0));
                step.keys = vec![kept(with_text(text(bytes)), &id, b"")];
                step
            };
            check(&*store, creating(MAX_KEY_TEXT_BYTES), creating(MAX_KEY_TEXT_BYTES + 1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn actor_causation_and_correlation_are_bounded() {
    const TEXTS: [fn(&mut Commit, Arc<str>); 3] = [
        |step, text| step.actor = text,
        |step, text| step.causation_id = Some(text),
        |step, text| step.correlation_id = Some(text),
    ];
    on_every_store(async |store| {
        for (number, give) in TEXTS.iter().enumerate() {
            let creating = |bytes: usize| {
                let mut step = commit(vec![creation(&job(&format!("{number}")), created(), at(0))], at(0));
                give(&mut step, Arc::from(text(bytes)));
                step
            };
            check(&*store, creating(MAX_CONTEXT_TEXT_BYTES), creating(MAX_CONTEXT_TEXT_BYTES + 1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn body_of_another_size_than_its_reference_says_is_refused() {
    on_every_store(async |store| {
        for size in [0, 3, 5, u64::MAX] {
            let mut step = commit(vec![creation(&job("a"), created(), at(0))], at(0));
            let body = new_body(BodyName::Result, b"four");
            step.changes[0].bodies =
                vec![body.clone(), NewBody { body: BodyRef { size, ..body.body }, ..body.clone() }];
            let refused = store.commit(step).await.unwrap_err();
            assert_eq!(refused.code(), "store_broken", "{refused}");
            assert_eq!(store.load(&job("a")).await, Ok(None));
            assert_eq!(store.body(&job("a"), body.body).await, Ok(None));
        }
    })
    .await;
}

#[tokio::test]
async fn bodies_without_a_fact_beside_them_are_refused() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let body = new_body(BodyName::Result, b"nobody names me");
        for removal in [Removal::Nothing, Removal::Bodies] {
            let mut change = next_change(&*store, &job("a"), vec![], at(1)).await;
            change.bodies = vec![body.clone()];
            change.removal = removal;
            let other = creation(&job("b"), created(), at(1));
            let refused = store.commit(commit(vec![other, change], at(1))).await.unwrap_err();
            assert_eq!(refused.code(), "store_broken", "{refused}");
            assert_eq!(store.body(&job("a"), body.body).await, Ok(None));
            assert_eq!(store.load(&job("b")).await, Ok(None));
        }
    })
    .await;
}

#[tokio::test]
async fn id_of_a_record_is_bounded_and_of_a_form_that_can_be_read_back() {
    on_every_store(async |store| {
        let named = |bytes: usize| {
            let id = job(&"x".repeat(bytes - "work-".len()));
            commit(vec![creation(&id, created(), at(0))], at(0))
        };
        check(&*store, named(MAX_ID_BYTES), named(MAX_ID_BYTES + 1)).await;

        let before = sight(&*store).await;
        for nameless in ["", "job-1", "op-1", "WORK-1"] {
            let id = RecordId::Job(JobId::new(nameless));
            let refused = store.commit(commit(vec![creation(&id, created(), at(0))], at(0))).await;
            assert_eq!(refused.unwrap_err().code(), "store_broken", "{nameless:?}");
        }
        assert_eq!(sight(&*store).await, before);
    })
    .await;
}

// The limits of the records, through `execute`.

fn engine(store: &Subject) -> Engine {
    let clock = Arc::new(ManualClock::at(at(0)));
    Engine::new(store.share(), clock, Arc::new(RandomIds), Retention::DEFAULT)
}

async fn execute(engine: &Engine, id: &RecordId, command: impl Into<Command>) -> Result<(), &'static str> {
    let order = Order::new(id.clone(), command, Arc::from("tester"));
    engine.execute(order).await.map(|_| ()).map_err(|error| error.code())
}

/// A limit, and the order that is as large as asked for.
type Case<C> = (usize, fn(usize) -> C);

fn create(change: impl FnOnce(&mut NewJob)) -> JobCommand {
    let mut new = new_job();
    change(&mut new);
    JobCommand::Create(Box::new(new))
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

#[tokio::test]
async fn every_part_of_a_new_job_is_bounded() {
    const CASES: [Case<JobCommand>; 19] = [
        (MAX_TITLE_BYTES, |size| create(|new| new.spec.title = text(size))),
        (MAX_LABEL_BYTES, |size| create(|new| new.spec.kind = text(size))),
        (MAX_LABEL_BYTES, |size| create(|new| new.spec.visibility = text(size))),
        (MAX_LABEL_BYTES, |size| create(|new| new.spec.executor = Some(text(size)))),
        (MAX_LABEL_BYTES, |size| create(|new| new.spec.lane = Some(text(size)))),
        (MAX_ID_BYTES, |size| create(|new| new.spec.created_by_peer_id = Some(text(size)))),
        (MAX_ID_BYTES, |size| create(|new| new.spec.owner_peer_id = Some(text(size)))),
        (MAX_ID_BYTES, |size| create(|new| new.spec.assigned_peer_id = Some(text(size)))),
        (MAX_TITLE_BYTES, |size| create(|new| new.spec.path = Some(text(size)))),
        (MAX_ID_BYTES, |size| create(|new| new.spec.session_id = Some(text(size)))),
        (MAX_ID_BYTES, |size| create(|new| new.spec.correlation_id = Some(text(size)))),
        (MAX_LABEL_BYTES, |size| create(|new| new.spec.circle = Some(text(size)))),
        (MAX_LABEL_BYTES, |size| create(|new| new.spec.source_kind = Some(text(size)))),
        (MAX_ID_BYTES, |size| create(|new| new.spec.source_id = Some(text(size)))),
        (MAX_LABEL_BYTES, |size| create(|new| new.spec.scope = Some(text(size)))),
        (MAX_LABEL_BYTES, |size| create(|new| new.spec.tags = vec![text(size)])),
        (MAX_TAGS, |count| create(|new| new.spec.tags = vec!["tag".to_owned(); count])),
        (MAX_BODIES, |count| create(|new| new.bodies = vec![new_body(BodyName::Input, b"{}").body; count])),
        (MAX_BODY_BYTES, |size| {
            let body = BodyRef { size: size as u64, ..new_body(BodyName::Input, b"").body };
            create(|new| new.bodies = vec![body])
        }),
    ];
    on_every_store(async |store| {
        let engine = engine(&store);
        for (number, (limit, order)) in CASES.iter().enumerate() {
            let id = job(&format!("{number}"));
            let before = sight(&*store).await;
            assert_eq!(execute(&engine, &id, order(limit + 1)).await, Err("too_large"), "case {number}");
            assert_eq!(sight(&*store).await, before);
            assert_eq!(execute(&engine, &id, order(*limit)).await, Ok(()), "case {number}");
        }
    })
    .await;
}

fn report(change: impl FnOnce(&mut Details)) -> JobCommand {
    let mut details = Details::default();
    change(&mut details);
    JobCommand::Report(Box::new(Report {
        attempt_id: None,
        state: JobStateName::Running,
        details,
        retryable: Retryable::No,
        jitter: Jitter(0),
        submit: SubmitWord::Unsaid,
        by: Reporter::Daemon,
    }))
}

fn summary(bytes: usize) -> ResultRefs {
    ResultRefs { summary: Some(text(bytes)), ..ResultRefs::default() }
}

#[tokio::test]
async fn every_part_of_a_report_and_of_a_cancel_is_bounded() {
    const CASES: [Case<JobCommand>; 8] = [
        (MAX_LABEL_BYTES, |size| report(|details| details.reason = Some(text(size)))),
        (MAX_LABEL_BYTES, |size| report(|details| details.phase = Some(text(size)))),
        (MAX_NOTE_BYTES, |size| report(|details| details.note = Some(text(size)))),
        (MAX_SUMMARY_BYTES, |size| report(|details| details.result = summary(size))),
        (MAX_PROGRESS_BYTES, |size| {
            let json = format!("\"{}\"", "x".repeat(size - 2));
            report(|details| details.progress = Some(Json::parse(&json).unwrap()))
        }),
        (MAX_BODY_BYTES, |size| {
            let data = BodyRef { size: size as u64, ..new_body(BodyName::Result, b"").body };
            report(|details| details.result.data = Some(data))
        }),
        (MAX_NOTE_BYTES, |size| JobCommand::RequestCancel { by: None, reason: text(size) }),
        (MAX_LABEL_BYTES, |size| JobCommand::RequestCancel { by: Some(text(size)), reason: String::new() }),
    ];
    on_every_store(async |store| {
        let engine = engine(&store);
        for (number, (limit, order)) in CASES.iter().enumerate() {
            let id = job(&format!("{number}"));
            execute(&engine, &id, create(|_| {})).await.unwrap();
            let before = sight(&*store).await;
            assert_eq!(execute(&engine, &id, order(limit + 1)).await, Err("too_large"), "case {number}");
            assert_eq!(sight(&*store).await, before);
            assert_eq!(execute(&engine, &id, order(*limit)).await, Ok(()), "case {number}");
        }
    })
    .await;
}

#[tokio::test]
async fn id_that_could_not_be_read_back_is_refused_before_it_blocks_its_lane() {
    on_every_store(async |store| {
        let engine = engine(&store);
        let long = job(&"x".repeat(MAX_ID_BYTES));
        assert_eq!(execute(&engine, &long, create(|_| {})).await, Err("too_large"));
        execute(&engine, &job("a"), create(|_| {})).await.unwrap();
        assert_eq!(ids(&store.take_ready(LANE.into(), take("node-a", at(0), 10)).await.unwrap()), ["work-a"]);
        assert_eq!(store.facts_after(0, 10).await.unwrap().len(), 1);
    })
    .await;
}
