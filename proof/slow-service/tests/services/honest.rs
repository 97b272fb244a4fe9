//! The honest manner: the plain pattern of 202, Location, Retry-After, status, cancel.

use serde_json::json;

use crate::given::{ask, cancel, seconds, service, start, start_reply, status};

#[tokio::test]
async fn a_start_is_accepted_with_where_and_when_to_ask() {
    let (service, _hand) = service().await;
    let reply = start_reply(&service, "k", &json!({"seconds": 3})).await;
    let id = reply.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(reply.status, 202);
    assert_eq!(reply.header("location"), Some(format!("/work/{id}").as_str()));
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(reply.json(), json!({"id": id, "state": "queued"}));
}

#[tokio::test]
async fn work_goes_on_by_the_clock_and_ends_with_its_result() {
    let (service, hand) = service().await;
    let id = start(&service, "k", json!({"seconds": 10, "steps": 5, "result": {"pages": 3}})).await;
    assert_eq!(status(&service, &id).await.state(), "queued");
    hand.advance(seconds(4));
    let running = status(&service, &id).await;
    assert_eq!(running.header("retry-after"), Some("1"));
    let expected =
        json!({"id": id, "state": "running", "progress": {"percent": 40}, "message": "step 2 of 5"});
    assert_eq!(running.json(), expected);
    hand.advance(seconds(6));
    let done = status(&service, &id).await;
    assert_eq!((done.state(), done.header("retry-after")), ("done".to_owned(), None));
    assert_eq!(done.json()["result"], json!({"pages": 3}));
    let result = ask(&service.url(), "GET", &format!("/work/{id}/result"), "", "").await;
    assert_eq!((result.status, result.json()), (200, json!({"pages": 3})));
}

#[tokio::test]
async fn work_that_was_to_fail_or_to_time_out_does_so_with_an_error_and_no_result() {
    let (service, hand) = service().await;
    let failed = start(&service, "f", json!({"seconds": 1, "outcome": "failed", "result": 1})).await;
    let timed_out = start(&service, "t", json!({"seconds": 1, "outcome": "timed_out"})).await;
    hand.advance(seconds(1));
    for (id, state, code) in [(failed, "failed", "work_failed"), (timed_out, "timed_out", "out_of_time")] {
        let body = status(&service, &id).await.json();
        assert_eq!((&body["state"], &body["error"]["code"]), (&json!(state), &json!(code)));
        assert!(body.get("result").is_none());
    }
}

#[tokio::test]
async fn the_same_key_is_one_start_and_another_body_under_it_is_refused() {
    let (service, _hand) = service().await;
    let id = start(&service, "k", json!({"seconds": 3})).await;
    assert_eq!(start(&service, "k", json!({"seconds": 3})).await, id);
    assert_eq!(start_reply(&service, "k", &json!({"seconds": 4})).await.status, 409);
    assert_ne!(start(&service, "other", json!({"seconds": 3})).await, id);
    let starts = service.starts();
    assert_eq!(starts.len(), 2);
    assert_eq!((starts[0].key.as_deref(), &starts[0].id), (Some("k"), &id));
    assert_eq!(starts[0].input, json!({"seconds": 3}));
    let ledger = ask(&service.url(), "GET", "/ledger", "", "").await.json();
    assert_eq!(ledger["starts"][0], json!({"key": "k", "id": id, "input": {"seconds": 3}}));
}

#[tokio::test]
async fn many_starts_at_once_under_one_key_are_one() {
    let (service, _hand) = service().await;
    let script = json!({"seconds": 3});
    let replies = (0..32).map(|_| start_reply(&service, "k", &script));
    let mut ids = std::collections::BTreeSet::new();
    for reply in futures_together(replies).await {
        ids.insert(reply.json()["id"].to_string());
    }
    assert_eq!((ids.len(), service.starts().len()), (1, 1));
    assert_eq!(service.requests().starts, 32);
}

#[tokio::test]
async fn work_is_found_by_its_key() {
    let (service, _hand) = service().await;
    let id = start(&service, "a key", json!({"seconds": 3})).await;
    let found = ask(&service.url(), "GET", "/work?key=a%20key", "", "").await;
    assert_eq!((found.status, found.json()["id"].clone()), (200, json!(id)));
    assert_eq!(ask(&service.url(), "GET", "/work?key=other", "", "").await.status, 404);
    assert_eq!(ask(&service.url(), "GET", "/work/work-0", "", "").await.status, 404);
    let requests = service.requests();
    assert_eq!((requests.lookups, requests.statuses, requests.starts), (2, 1, 1));
}

#[tokio::test]
async fn cancelled_work_stays_cancelled_and_what_is_over_is_not_cancelled() {
    let (service, hand) = service().await;
    let id = start(&service, "k", json!({"seconds": 3})).await;
    let done = start(&service, "done", json!({"seconds": 1})).await;
    hand.advance(seconds(1));
    let reply = cancel(&service, &id).await;
    assert_eq!((reply.status, reply.state()), (200, "cancelled".to_owned()));
    hand.advance(seconds(10));
    assert_eq!(status(&service, &id).await.state(), "cancelled");
    assert_eq!(cancel(&service, &id).await.status, 200);
    assert_eq!(cancel(&service, &done).await.status, 409);
    assert_eq!(status(&service, &done).await.state(), "done");
}

#[tokio::test]
async fn a_start_that_nobody_can_understand_is_refused_and_not_on_the_ledger() {
    let (service, _hand) = service().await;
    let unreadable =
        ["", "[]", "{\"seconds\": -1}", "{\"steps\": 0}", "{\"manner\": \"nice\"}", "{\"secnods\": 1}"];
    for body in unreadable {
        assert_eq!(ask(&service.url(), "POST", "/work", "", body).await.status, 400, "{body}");
    }
    assert_eq!(service.starts(), []);
    assert_eq!(ask(&service.url(), "DELETE", "/work/a", "", "").await.status, 405);
    assert_eq!(ask(&service.url(), "GET", "/elsewhere", "", "").await.status, 404);
}

/// All of them at once.
async fn futures_together<T>(tasks: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut tasks: Vec<_> = tasks.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = tasks.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (task, done) in tasks.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(value) = task.as_mut().poll(context) {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
