//! Manners that show when someone wants the work stopped.

use serde_json::json;

use crate::given::{cancel, raw, seconds, service, start, start_as, status};

#[tokio::test]
async fn refuses_cancel_says_so_and_works_on() {
    let (service, hand) = service().await;
    let id = start_as(&service, "refuses_cancel").await;
    let reply = cancel(&service, &id).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (409, &json!("not_cancelable")));
    hand.advance(seconds(10));
    assert_eq!(status(&service, &id).await.state(), "done");
}

#[tokio::test]
async fn cancel_unreachable_closes_without_a_word_and_works_on() {
    let (service, hand) = service().await;
    let id = start_as(&service, "cancel_unreachable").await;
    for _ in 0..5 {
        let (bytes, _) = raw(&service.url(), "POST", &format!("/work/{id}/cancel"), "", "").await;
        assert_eq!(bytes, b"");
    }
    assert_eq!(service.requests().cancels, 5);
    hand.advance(seconds(10));
    assert_eq!(status(&service, &id).await.state(), "done");
}

#[tokio::test]
async fn cancels_late_runs_on_for_some_statuses_and_then_stops() {
    let (service, hand) = service().await;
    let id = start_as(&service, "cancels_late").await;
    assert_eq!(status(&service, &id).await.state(), "queued");
    assert_eq!(cancel(&service, &id).await.status, 202);
    hand.advance(seconds(20));
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(status(&service, &id).await.state());
    }
    assert_eq!(seen, ["running", "running", "cancelled", "cancelled"]);
}

#[tokio::test]
async fn any_bad_answer_can_be_asked_for_at_the_cancel() {
    let (service, _hand) = service().await;
    let id = start(&service, "k", json!({"seconds": 10, "manner": "error_500", "at": "cancel"})).await;
    assert_eq!(status(&service, &id).await.status, 200);
    assert_eq!(cancel(&service, &id).await.status, 500);
    assert_eq!(status(&service, &id).await.state(), "cancelled");
}
