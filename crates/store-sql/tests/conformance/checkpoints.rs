//! Checkpoints: what is before one goes in its commit, and everything that is left begins with it.

use domain::operation::{OperationFact, PollError};
use domain::{BodyName, Fact, RecordId};
use store::{Removal, Store, StoreError, StoredFact, fact_kind};

use crate::given::*;
use crate::subject::on_every_store;

/// The facts that are left of a record: version and kind of each.
async fn left(store: &dyn Store, id: &RecordId, after: u64) -> Vec<(u64, &'static str)> {
    let facts = store.facts_of(id, after, 100).await.unwrap();
    facts.iter().map(|fact| (fact.version, fact_kind(&fact.fact))).collect()
}

async fn facts_of_others(store: &dyn Store, id: &RecordId) -> Vec<StoredFact> {
    let facts = store.facts_after(0, 1_000).await.unwrap();
    facts.into_iter().filter(|fact| fact.stream != *id).collect()
}

#[tokio::test]
async fn checkpoint_takes_older_facts_of_its_stream_and_no_others() {
    on_every_store(async |store| {
        let id = operation("press");
        live_in(&*store).await;
        let others = facts_of_others(&*store, &id).await;
        for (polls, from, in_all) in [(3, 70, 5), (0, 80, 6), (2, 90, 9)] {
            let version = checkpoint(&*store, &id, polls, from).await;
            let kept = [(version, "operation.checkpointed/1"), (version + 1, "external_production_polled/1")];
            assert_eq!(left(&*store, &id, 0).await, kept);
            assert_eq!(left(&*store, &id, version - 1).await, kept);
            assert_eq!(left(&*store, &id, version).await, kept[1..]);
            assert_eq!(facts_of_others(&*store, &id).await, others);
            let loaded = store.load(&id).await.unwrap().unwrap();
            assert_eq!(loaded.head.version, version + 1);
            assert_eq!(loaded.record.as_operation().unwrap().polls, in_all);
        }
        let newest = store.facts_after(others.last().unwrap().position, 100).await.unwrap();
        assert_eq!(newest.len(), 2, "a follower of the ledger sees the checkpoint and what came with it");
    })
    .await;
}

#[tokio::test]
async fn commit_with_a_checkpoint_is_repeated_and_not_doubled() {
    on_every_store(async |store| {
        let id = operation("a");
        write(&*store, &id, vec![accepted(&job("a"), at(5))], at(0)).await;
        let alone = commit(vec![next_change(&*store, &id, vec![polled(at(31))], at(2)).await], at(2));
        store.commit(alone.clone()).await.unwrap();
        let change = checkpointed_change(&*store, &id, vec![polled(at(32))], at(3)).await;
        let last = commit(vec![change], at(3));
        let committed = store.commit(last.clone()).await.unwrap();
        let before = sight(&*store).await;
        assert_eq!(store.commit(last.clone()).await, Ok(committed));
        assert_eq!(store.commit(under_other_fact_ids(last)).await, Err(StoreError::Conflict));
        // Nothing is left of it that could tell.
        assert_eq!(store.commit(alone).await, Err(StoreError::Conflict));
        assert_eq!(sight(&*store).await, before);
    })
    .await;
}

#[tokio::test]
async fn bodies_that_only_older_facts_named_go_with_them() {
    on_every_store(async |store| {
        let (id, other) = (operation("a"), operation("b"));
        let [handle, said, stray] =
            [(BodyName::Handle, "render-7"), (BodyName::Error, "no"), (BodyName::Error, "yes")]
                .map(|(name, text)| new_body(name, text.as_bytes()));
        for id in [&id, &other] {
            let mut begin = creation(id, accepted(&job("a"), at(5)), at(0));
            begin.bodies = vec![handle.clone(), stray.clone()];
            store.commit(commit(vec![begin], at(0))).await.unwrap();
            let Fact::Operation(OperationFact::Polled(mut failed)) = polled(at(30)) else { unreachable!() };
            failed.error = Some(PollError { said: Some(said.body), ..PollError::default() });
            let failed = Fact::Operation(OperationFact::Polled(failed));
            let mut poll = next_change(&*store, id, vec![failed], at(1)).await;
            poll.bodies = vec![said.clone()];
            store.commit(commit(vec![poll], at(1))).await.unwrap();
        }
        let mut change = checkpointed_change(&*store, &id, vec![polled(at(32))], at(3)).await;
        let late = new_body(BodyName::Error, b"of nobody");
        change.bodies = vec![late.clone()];
        store.commit(commit(vec![change], at(3))).await.unwrap();
        for (id, body, there) in [
            (&id, &handle, true),
            (&id, &said, true),
            (&id, &stray, false),
            (&id, &late, false),
            (&other, &handle, true),
            (&other, &said, true),
            (&other, &stray, true),
        ] {
            let read = store.body(id, body.body).await.unwrap();
            assert_eq!(read.as_deref(), there.then_some(&body.bytes[..]), "{id} {:?}", body.body);
        }
    })
    .await;
}

#[tokio::test]
async fn older_facts_do_not_go_without_a_checkpoint() {
    on_every_store(async |store| {
        let id = operation("a");
        write(&*store, &id, vec![accepted(&job("a"), at(5))], at(0)).await;
        let before = sight(&*store).await;
        let mut change = next_change(&*store, &id, vec![polled(at(30))], at(1)).await;
        change.removal = Removal::OlderFacts;
        let refused = store.commit(commit(vec![change], at(1))).await.unwrap_err();
        assert_eq!(refused.code(), "store_broken");
        assert_eq!(sight(&*store).await, before);
    })
    .await;
}

#[tokio::test]
async fn state_that_is_larger_than_a_fact_may_be_is_checkpointed() {
    on_every_store(async |store| {
        let (id, long) = (operation("a"), "x".repeat(40_000));
        write(&*store, &id, vec![known_as(&long, &job("a"), at(5))], at(0)).await;
        let Fact::Operation(OperationFact::Polled(mut hinted)) = polled(at(30)) else { unreachable!() };
        hinted.progress_hint = Some(long);
        write(&*store, &id, vec![Fact::Operation(OperationFact::Polled(hinted))], at(1)).await;
        assert_eq!(checkpoint(&*store, &id, 0, 2).await, 3);
        assert_eq!(left(&*store, &id, 0).await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn checkpointed_record_ends_and_retires_as_any_other() {
    on_every_store(async |store| {
        let id = operation("a");
        write(&*store, &id, vec![accepted(&job("a"), at(5))], at(0)).await;
        checkpoint(&*store, &id, 3, 1).await;
        write(&*store, &id, vec![resolved()], at(9)).await;
        store.commit(crate::retirement::retiring(&*store, &id, 10).await).await.unwrap();
        assert_eq!(store.load(&id).await, Ok(None));
        assert_eq!(store.facts_after(0, 100).await, Ok(Vec::new()));
    })
    .await;
}
