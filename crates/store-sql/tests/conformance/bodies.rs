//! Bodies: by record, name and digest, written with the commit that refers to them.

use domain::{BodyName, Fact, job::JobFact};
use store::{Removal, body_ref};

use crate::given::*;
use crate::subject::on_every_store;

#[tokio::test]
async fn body_is_found_by_record_name_and_digest_and_by_nothing_less() {
    on_every_store(async |store| {
        let mut change = creation(&job("a"), created(), at(0));
        let bodies = [
            new_body(BodyName::Input, b"{\"pages\":[1,2]}"),
            new_body(BodyName::Request, b"{\"pages\":[1,2]}"),
            new_body(BodyName::Prompt, b"\0\xff any bytes"),
            new_body(BodyName::Provenance, b""),
        ];
        change.bodies = bodies.to_vec();
        store.commit(commit(vec![change, creation(&job("b"), created(), at(0))], at(0))).await.unwrap();

        for body in &bodies {
            let found = store.body(&job("a"), body.body).await.unwrap();
            assert_eq!(found.as_deref(), Some(&*body.bytes));
            assert_eq!(store.body(&job("b"), body.body).await, Ok(None));
            assert_eq!(store.body(&operation("a"), body.body).await, Ok(None));
        }
        for missing in [body_ref(BodyName::Prompt, b"{\"pages\":[1,2]}"), body_ref(BodyName::Input, b"{}")] {
            assert_eq!(store.body(&job("a"), missing).await, Ok(None));
        }
    })
    .await;
}

#[tokio::test]
async fn every_attempt_keeps_its_own_result() {
    on_every_store(async |store| {
        let (first, second) =
            (new_body(BodyName::Error, b"out of paper"), new_body(BodyName::Error, b"out of ink"));
        write(&*store, &job("a"), vec![created(), dispatched(1)], at(0)).await;
        for (body, next) in [(&first, vec![dispatched(2)]), (&second, vec![])] {
            let facts = [vec![failed_with(body.body)], next].concat();
            let mut failing = next_change(&*store, &job("a"), facts, at(1)).await;
            failing.bodies = vec![body.clone()];
            store.commit(commit(vec![failing], at(1))).await.unwrap();
        }
        for body in [first, second] {
            assert_eq!(store.body(&job("a"), body.body).await.unwrap().as_deref(), Some(&*body.bytes));
        }
    })
    .await;
}

#[tokio::test]
async fn body_that_is_there_already_is_no_error() {
    on_every_store(async |store| {
        let body = new_body(BodyName::Result, b"{}");
        write(&*store, &job("a"), vec![created()], at(0)).await;
        for _ in 0..2 {
            let mut change = next_change(&*store, &job("a"), vec![noted("again")], at(1)).await;
            change.bodies = vec![body.clone()];
            store.commit(commit(vec![change], at(1))).await.unwrap();
        }
        assert_eq!(store.body(&job("a"), body.body).await.unwrap().as_deref(), Some(&b"{}"[..]));
    })
    .await;
}

#[tokio::test]
async fn purge_takes_the_bodies_of_its_record_and_nothing_else() {
    on_every_store(async |store| {
        let body = new_body(BodyName::Result, b"private");
        for name in ["a", "b"] {
            let mut change =
                change(&job(name), None, vec![created(), dispatched(1), completed_with(body.body)], at(0));
            change.bodies = vec![body.clone()];
            store.commit(commit(vec![change], at(0))).await.unwrap();
        }
        let mut purge = next_change(&*store, &job("a"), vec![Fact::Job(JobFact::Purged)], at(1)).await;
        purge.removal = Removal::Bodies;
        store.commit(commit(vec![purge], at(1))).await.unwrap();

        assert_eq!(store.body(&job("a"), body.body).await, Ok(None));
        assert_eq!(store.body(&job("b"), body.body).await.unwrap().as_deref(), Some(&*body.bytes));
        assert_eq!(store.facts_of(&job("a"), 0, 10).await.unwrap().len(), 4);
        assert_eq!(store.load(&job("a")).await.unwrap().unwrap().head.version, 4);
    })
    .await;
}
