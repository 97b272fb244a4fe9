//! Idempotency keys: one answer per (principal, route, key), for ever the same.

use store::{IdempotencyKey, StoreError};
use tokio::task::JoinSet;

use crate::given::*;
use crate::subject::on_every_store;

const ANSWER: &[u8] = b"{\"id\":\"work-a\"}\n\xff\0 not even text";

fn creating(name: &str, key: IdempotencyKey, answer: &[u8]) -> store::Commit {
    let mut step = commit(vec![creation(&job(name), created(), at(0))], at(0));
    step.keys = vec![kept(key, &job(name), answer)];
    step
}

#[tokio::test]
async fn key_that_was_used_gives_the_first_answer_byte_for_byte_and_writes_nothing() {
    on_every_store(async |store| {
        assert_eq!(store.key(&key("k")).await, Ok(None));
        store.commit(creating("a", key("k"), ANSWER)).await.unwrap();
        let before = sight(&*store).await;

        let first = kept(key("k"), &job("a"), ANSWER);
        let refused = store.commit(creating("b", key("k"), b"another answer")).await;
        assert_eq!(refused, Err(StoreError::KeyTaken(Box::new(first.clone()))));
        assert_eq!(store.key(&key("k")).await, Ok(Some(first)));
        assert_eq!(sight(&*store).await, before);
    })
    .await;
}

#[tokio::test]
async fn key_is_one_per_principal_route_and_key() {
    on_every_store(async |store| {
        let others = [
            key("k"),
            key("other"),
            IdempotencyKey { principal: "token:grace".to_owned(), ..key("k") },
            IdempotencyKey { route: "POST /work".to_owned(), ..key("k") },
            // Not to be had by moving bytes between the three.
            IdempotencyKey { principal: "token:adaPOST /jobs".to_owned(), route: String::new(), ..key("k") },
        ];
        for (name, key) in ["a", "b", "c", "d", "e"].into_iter().zip(&others) {
            store.commit(creating(name, key.clone(), name.as_bytes())).await.unwrap();
        }
        for (name, key) in ["a", "b", "c", "d", "e"].into_iter().zip(&others) {
            assert_eq!(store.key(key).await.unwrap().unwrap().record, job(name));
        }
    })
    .await;
}

#[tokio::test]
async fn commit_that_was_refused_does_not_use_its_key_up() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        assert_eq!(store.commit(creating("a", key("k"), ANSWER)).await, Err(StoreError::Conflict));
        assert_eq!(store.key(&key("k")).await, Ok(None));
        store.commit(creating("b", key("k"), ANSWER)).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_commits_at_once_under_one_key_make_one_job() {
    on_every_store(async |store| {
        for round in 0..8 {
            let one_key = key(&format!("round-{round}"));
            let mut tasks = JoinSet::new();
            for caller in 0..64 {
                let (store, one_key) = (store.share(), one_key.clone());
                let name = format!("{round}-{caller}");
                tasks.spawn(async move { store.commit(creating(&name, one_key, name.as_bytes())).await });
            }
            let (mut winners, mut refused) = (0, Vec::new());
            while let Some(answer) = tasks.join_next().await {
                match answer.unwrap() {
                    Ok(_) => winners += 1,
                    Err(StoreError::KeyTaken(kept)) => refused.push(*kept),
                    Err(other) => panic!("{other}"),
                }
            }
            let stored = store.key(&one_key).await.unwrap().unwrap();
            assert_eq!((winners, refused.len()), (1, 63));
            assert!(refused.iter().all(|kept| *kept == stored));
            assert_eq!(store.facts_of(&stored.record, 0, 10).await.unwrap().len(), 1);
        }
        let jobs: u64 = store.job_counts().await.unwrap().into_iter().map(|(_, count)| count).sum();
        assert_eq!(jobs, 8);
    })
    .await;
}
