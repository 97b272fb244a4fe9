//! Retirement: everything of a record goes in one commit, and no trace of it is given to another.

use domain::{BodyName, RecordId};
use store::{Commit, KeptKey, Removal, Store, StoreError, decode_fact};

use crate::given::*;
use crate::subject::on_every_store;

/// The commit that retires a record as it is now.
pub async fn retiring(store: &dyn Store, id: &RecordId, seconds: u64) -> Commit {
    let fact = decode_fact(&format!("{}.retired/1", id.kind().as_str()), "\"retired\"").unwrap();
    let mut change = next_change(store, id, vec![fact], at(seconds)).await;
    change.removal = Removal::Record;
    commit(vec![change], at(seconds))
}

/// A finished job with a body, a key and a claim.
async fn finished(store: &dyn Store, name: &str) {
    let body = new_body(BodyName::Result, b"private");
    let mut change = creation(&job(name), created(), at(0));
    change.bodies = vec![body.clone()];
    let mut step = commit(vec![change], at(0));
    step.keys = vec![KeptKey { keep_until: at(1), ..kept(key(name), &job(name), b"created") }];
    store.commit(step).await.unwrap();
    taken(store, &job(name), "node-a", at(0)).await;
    write(store, &job(name), vec![dispatched(1), completed_with(body.body)], at(1)).await;
}

#[tokio::test]
async fn retired_record_is_gone_with_view_agenda_key_bodies_and_facts_and_others_stay() {
    on_every_store(async |store| {
        finished(&*store, "b").await;
        let others = sight(&*store).await;
        finished(&*store, "a").await;
        write(&*store, &operation("a"), vec![accepted(&job("a"), at(5)), resolved()], at(1)).await;
        for id in [operation("a"), job("a")] {
            store.commit(retiring(&*store, &id, 2).await).await.unwrap();
            assert_eq!(store.load(&id).await, Ok(None));
            assert!(store.facts_of(&id, 0, 10).await.unwrap().is_empty());
            assert_eq!(store.take(&id, take("node-a", at(9), 1)).await, Err(StoreError::UnknownRecord));
        }
        let body = new_body(BodyName::Result, b"private");
        assert_eq!(store.body(&job("a"), body.body).await, Ok(None));
        assert_eq!(store.key(&key("a")).await, Ok(None));
        assert_eq!(sight(&*store).await, others);
        assert!(store.body(&job("b"), body.body).await.unwrap().is_some());
        assert!(store.key(&key("b")).await.unwrap().is_some());
    })
    .await;
}

#[tokio::test]
async fn position_is_never_given_twice() {
    on_every_store(async |store| {
        let mut last = write(&*store, &job("kept"), vec![created()], at(0)).await.position;
        for round in 0..3 {
            let name = format!("{round}");
            write(&*store, &job(&name), vec![created(), dispatched(1), completed()], at(0)).await;
            let retired = store.commit(retiring(&*store, &job(&name), 1).await).await.unwrap().position;
            assert_eq!(retired, last + 4);
            last = retired;
        }
        assert_eq!(store.facts_after(0, 10).await.unwrap().len(), 1);
        assert_eq!(write(&*store, &job("next"), vec![created()], at(2)).await.position, last + 1);
    })
    .await;
}

#[tokio::test]
async fn id_of_a_retired_record_begins_anew() {
    on_every_store(async |store| {
        finished(&*store, "a").await;
        store.commit(retiring(&*store, &job("a"), 2).await).await.unwrap();
        finished(&*store, "a").await;
        let loaded = store.load(&job("a")).await.unwrap().unwrap();
        assert_eq!((loaded.head.version, loaded.claim.unwrap().claim_version), (3, 0));
    })
    .await;
}

#[tokio::test]
async fn retirement_on_an_old_head_takes_nothing_away() {
    on_every_store(async |store| {
        finished(&*store, "a").await;
        let late = retiring(&*store, &job("a"), 2).await;
        write(&*store, &job("a"), vec![noted("one more word")], at(2)).await;
        let before = sight(&*store).await;
        assert_eq!(store.commit(late).await, Err(StoreError::Conflict));
        assert_eq!(sight(&*store).await, before);
        assert!(store.key(&key("a")).await.unwrap().is_some());
    })
    .await;
}
