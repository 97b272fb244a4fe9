//! Asks: kept once, closed once, gone when their time is over; alone or with a commit; and no part of the ledger.

use domain::ask::{Ask, AskChange, CloseReason, Closing, DEFAULT_TTL_SECONDS, MAX_ASK_BYTES, MAX_OPEN_ASKS};
use domain::{JobId, Timestamp};
use store::{AskQuery, Commit, Direction, Store, StoreError, sha256};

use crate::given::*;
use crate::subject::on_every_store;

fn ask(id: &str, from: Option<&str>, to: &str, seconds: u64) -> Ask {
    Ask {
        id: format!("ask-{id}"),
        circle: Some("press".to_owned()),
        from_peer: from.map(str::to_owned),
        to_peer: to.to_owned(),
        text: "gloss or matt?".to_owned(),
        job_id: Some(JobId::new("work-1")),
        reply_to: None,
        asked_by: "token-1".to_owned(),
        request_sha256: sha256(id.as_bytes()),
        created_at: at(seconds),
        expires_at: at(seconds + DEFAULT_TTL_SECONDS),
        closed: None,
    }
}

fn closing(reason: CloseReason, seconds: u64) -> Closing {
    Closing { at: at(seconds), reason, message: Some("matt".to_owned()), by: Some("peer-b".to_owned()) }
}

fn open(peer: &str, direction: Direction, now: Timestamp) -> AskQuery {
    AskQuery::Open { peer: peer.to_owned(), circle: Some("press".to_owned()), direction, now, limit: 10 }
}

async fn ids(store: &dyn Store, query: AskQuery) -> Vec<String> {
    store.asks(query).await.unwrap().into_iter().map(|ask| ask.id).collect()
}

// conforms: R4
#[tokio::test]
async fn ask_is_kept_whole_once_and_closed_once() {
    on_every_store(async |store| {
        let first = ask("1", Some("peer-a"), "peer-b", 1);
        assert_eq!(store.keep_ask(first.clone(), None).await, Ok(true));
        let again = Ask { text: "something else".to_owned(), ..first.clone() };
        assert_eq!(store.keep_ask(again, None).await, Ok(false));
        assert_eq!(store.ask("ask-1").await, Ok(Some(first.clone())));
        assert_eq!(store.ask("ask-2").await, Ok(None));
        let ended = closing(CloseReason::AckWithMessage, 9);
        assert_eq!(store.close_ask("ask-1", ended.clone()).await, Ok(true));
        assert_eq!(store.close_ask("ask-1", closing(CloseReason::Ack, 10)).await, Ok(false));
        assert_eq!(store.close_ask("ask-2", closing(CloseReason::Ack, 10)).await, Ok(false));
        assert_eq!(store.ask("ask-1").await, Ok(Some(Ask { closed: Some(ended), ..first })));
        assert!(store.facts_after(0, 10).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn open_asks_are_listed_by_their_parties_newest_first_and_those_of_a_job_also_when_they_are_closed() {
    on_every_store(async |store| {
        for (id, from, to, seconds) in
            [("1", "peer-a", "peer-b", 1), ("2", "peer-b", "peer-a", 2), ("3", "peer-a", "peer-b", 3)]
        {
            store.keep_ask(ask(id, Some(from), to, seconds), None).await.unwrap();
        }
        let foreign = Ask { circle: None, job_id: None, ..ask("4", Some("peer-a"), "peer-b", 4) };
        store.keep_ask(foreign, None).await.unwrap();
        let short = Ask { expires_at: at(20), ..ask("5", None, "peer-b", 5) };
        store.keep_ask(short, None).await.unwrap();
        assert_eq!(
            ids(&*store, open("peer-b", Direction::Inbound, at(9))).await,
            ["ask-5", "ask-3", "ask-1"]
        );
        assert_eq!(ids(&*store, open("peer-b", Direction::Inbound, at(20))).await, ["ask-3", "ask-1"]);
        assert_eq!(ids(&*store, open("peer-a", Direction::Outbound, at(9))).await, ["ask-3", "ask-1"]);
        store.close_ask("ask-3", closing(CloseReason::Ack, 9)).await.unwrap();
        assert_eq!(ids(&*store, open("peer-b", Direction::Inbound, at(20))).await, ["ask-1"]);
        let of_job = AskQuery::OfJob { job_id: JobId::new("work-1"), limit: 3 };
        assert_eq!(ids(&*store, of_job).await, ["ask-5", "ask-3", "ask-2"]);
    })
    .await;
}

#[tokio::test]
async fn ask_that_replies_closes_the_other_in_the_same_step() {
    on_every_store(async |store| {
        store.keep_ask(ask("1", Some("peer-a"), "peer-b", 1), None).await.unwrap();
        let reply = Ask { reply_to: Some("ask-1".to_owned()), ..ask("2", Some("peer-b"), "peer-a", 2) };
        let replied = closing(CloseReason::ReplyTo, 2);
        assert_eq!(store.keep_ask(reply.clone(), Some(replied.clone())).await, Ok(true));
        assert_eq!(store.ask("ask-1").await.unwrap().unwrap().closed, Some(replied));
        let later = closing(CloseReason::ReplyTo, 3);
        let second = Ask { id: "ask-3".to_owned(), ..reply };
        assert_eq!(store.keep_ask(second, Some(later)).await, Ok(true));
        assert_eq!(store.ask("ask-1").await.unwrap().unwrap().closed.unwrap().at, at(2));
    })
    .await;
}

#[tokio::test]
async fn asks_whose_time_is_over_go_when_others_are_written() {
    on_every_store(async |store| {
        let day = DEFAULT_TTL_SECONDS;
        store.keep_ask(Ask { expires_at: at(20), ..ask("1", None, "peer-b", 1) }, None).await.unwrap();
        store.keep_ask(ask("2", None, "peer-b", 2), None).await.unwrap();
        store.close_ask("ask-2", closing(CloseReason::FireCompleted, 3)).await.unwrap();
        store.keep_ask(ask("3", None, "peer-c", 3_602), None).await.unwrap();
        assert!(store.ask("ask-2").await.unwrap().is_some(), "an hour is not over");
        store.keep_ask(ask("4", None, "peer-c", 3_603), None).await.unwrap();
        assert!(store.ask("ask-2").await.unwrap().is_none());
        assert!(store.ask("ask-1").await.unwrap().is_some(), "it may be repeated under its key for a day");
        store.keep_ask(ask("5", None, "peer-c", day + 1), None).await.unwrap();
        assert!(store.ask("ask-1").await.unwrap().is_none());
        assert!(store.ask("ask-3").await.unwrap().is_some());
    })
    .await;
}

#[tokio::test]
async fn peer_has_a_bounded_number_of_open_asks_before_it_and_texts_are_bounded() {
    on_every_store(async |store| {
        let mut waiting = Vec::new();
        for number in 0..MAX_OPEN_ASKS {
            waiting.push(store.keep_ask(ask(&format!("{number:04}"), None, "peer-b", 1), None));
        }
        for kept in futures::future::join_all(waiting).await {
            assert_eq!(kept, Ok(true));
        }
        let refused = store.keep_ask(ask("more", None, "peer-b", 1), None).await;
        assert_eq!(refused, Err(StoreError::TooLarge { what: "open asks of a peer", limit: MAX_OPEN_ASKS }));
        assert_eq!(store.keep_ask(ask("other", None, "peer-c", 1), None).await, Ok(true));
        store.close_ask("ask-0000", closing(CloseReason::Ack, 2)).await.unwrap();
        assert_eq!(store.keep_ask(ask("more", None, "peer-b", 2), None).await, Ok(true));
        let long = Ask { text: "x".repeat(MAX_ASK_BYTES + 1), ..ask("long", None, "peer-d", 1) };
        assert_eq!(store.keep_ask(long, None).await.unwrap_err().code(), "too_large");
        let message = Some("x".repeat(MAX_ASK_BYTES + 1));
        let told = Closing { message, ..closing(CloseReason::AckWithMessage, 2) };
        assert_eq!(store.close_ask("ask-other", told).await.unwrap_err().code(), "too_large");
        assert_eq!(store.ask("ask-other").await.unwrap().unwrap().closed, None);
    })
    .await;
}

// conforms: R7
#[tokio::test]
async fn asks_of_a_commit_are_written_and_closed_with_it_or_not_at_all() {
    on_every_store(async |store| {
        let opens = |id: &str| AskChange::Opened(Box::new(ask(id, None, "peer-b", 1)));
        let creation = |name: &str, asks: Vec<AskChange>| Commit {
            asks,
            ..commit(vec![creation(&job(name), created(), at(1))], at(1))
        };
        let whole = creation("a", vec![opens("1"), opens("2")]);
        store.commit(whole.clone()).await.unwrap();
        store.commit(whole.clone()).await.unwrap();
        let unfit = under_other_fact_ids(Commit { asks: vec![opens("3")], ..whole });
        assert_eq!(store.commit(unfit).await, Err(StoreError::Conflict));
        assert_eq!(store.ask("ask-3").await, Ok(None));
        assert_eq!(ids(&*store, open("peer-b", Direction::Inbound, at(9))).await, ["ask-2", "ask-1"]);
        let ended = Closing { message: None, by: None, ..closing(CloseReason::FireCompleted, 5) };
        let closes = |id: &str| AskChange::Closed { id: id.to_owned(), closing: ended.clone() };
        store.commit(creation("b", vec![closes("ask-1"), closes("ask-none")])).await.unwrap();
        assert_eq!(store.ask("ask-1").await.unwrap().unwrap().closed, Some(ended.clone()));
        assert_eq!(ids(&*store, open("peer-b", Direction::Inbound, at(9))).await, ["ask-2"]);
    })
    .await;
}
