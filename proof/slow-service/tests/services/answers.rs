//! Manners that send an answer as no server should.

use std::time::Instant;

use serde_json::{Value, json};
use slow_service::{Measures, SlowService};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::given::{address, parse, raw_status, seconds, service, start, start_as, status};

#[tokio::test]
async fn huge_body_is_a_well_formed_status_far_over_any_cap() {
    let (service, _hand) = service().await;
    let id = start_as(&service, "huge_body").await;
    let reply = status(&service, &id).await;
    assert!(reply.body.len() > Measures::small().huge_body_bytes);
    assert_eq!(reply.header("content-length"), Some(reply.body.len().to_string().as_str()));
    assert_eq!(reply.state(), "running");
}

#[tokio::test]
async fn gzip_bomb_is_small_on_the_wire_and_says_how_it_is_packed() {
    let (service, _hand) = service().await;
    let id = start_as(&service, "gzip_bomb").await;
    let reply = status(&service, &id).await;
    assert_eq!(reply.header("content-encoding"), Some("gzip"));
    assert!(reply.body.len() * 100 < Measures::small().bomb_bytes, "{} bytes", reply.body.len());
    // The last four bytes of a gzip file are the length of what is in it.
    let tail: [u8; 4] = reply.body[reply.body.len() - 4..].try_into().unwrap();
    assert!(u32::from_le_bytes(tail) as usize > Measures::small().bomb_bytes);
}

#[tokio::test]
async fn drips_sends_every_byte_alone() {
    let (service, _hand) = service().await;
    let id = start_as(&service, "drips").await;
    let began = Instant::now();
    let (bytes, _) = raw_status(&service, &id).await;
    let pauses = u32::try_from(bytes.len()).unwrap() - 1;
    assert!(began.elapsed() >= Measures::small().drip * pauses, "{pauses} pauses in {:?}", began.elapsed());
    assert_eq!(parse(&bytes).state(), "queued");
}

#[tokio::test]
async fn hangs_accepts_and_sends_nothing() {
    let (service, _hand) = service().await;
    let id = start_as(&service, "hangs").await;
    let began = Instant::now();
    let (bytes, _) = raw_status(&service, &id).await;
    assert_eq!(bytes, b"");
    assert!(began.elapsed() >= Measures::small().hang);
}

#[tokio::test]
async fn slow_30s_answers_rightly_after_its_time() {
    let (service, _hand) = service().await;
    let id = start_as(&service, "slow_30s").await;
    let began = Instant::now();
    assert_eq!(status(&service, &id).await.state(), "queued");
    assert!(began.elapsed() >= Measures::small().slow);
    assert_eq!(Measures::default().slow, seconds(30));
}

#[tokio::test]
async fn closes_resets_the_connection_in_mid_answer_three_times() {
    let (service, _hand) = service().await;
    let id = start_as(&service, "closes").await;
    for _ in 0..3 {
        let (bytes, reset) = raw_status(&service, &id).await;
        assert!(reset, "the connection ends with a reset");
        assert!(
            serde_json::from_slice::<Value>(bytes.rsplit(|byte| *byte == b'\n').next().unwrap()).is_err()
        );
    }
    assert_eq!(status(&service, &id).await.state(), "queued");
}

#[tokio::test]
async fn garbage_is_never_a_status_that_says_the_end() {
    let (service, hand) = service().await;
    let id = start_as(&service, "garbage").await;
    hand.advance(seconds(10));
    let mut bodies = Vec::new();
    for _ in 0..9 {
        let reply = status(&service, &id).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
        if let Ok(body) = serde_json::from_slice::<Value>(&reply.body) {
            assert!(body["state"] != "done" && body["state"] != "failed", "{body}");
        }
        bodies.push(reply.body);
    }
    assert!(serde_json::from_slice::<Value>(&bodies[0]).is_err(), "not JSON");
    assert!(serde_json::from_slice::<Value>(&bodies[1]).unwrap()["state"].is_number(), "wrong types");
    assert_eq!(serde_json::from_slice::<Value>(&bodies[2]).unwrap()["state"], "transcending");
    assert!(bodies[3].windows(2).filter(|pair| pair == b"[[").count() >= Measures::small().nesting - 1);
    assert_eq!(String::from_utf8_lossy(&bodies[4]).matches("\"state\"").count(), 2, "doubled keys");
    assert!(std::str::from_utf8(&bodies[5]).is_err(), "invalid UTF-8");
    assert_eq!(bodies[6], b"");
    assert!(serde_json::from_slice::<Value>(&bodies[7]).is_err(), "half a status");
    assert_eq!(bodies[8], b"null");
}

#[tokio::test]
async fn redirects_to_private_points_where_only_the_host_can_go() {
    let (service, _hand) = service().await;
    let id = start_as(&service, "redirects_to_private").await;
    let mut targets = Vec::new();
    for _ in 0..3 {
        let reply = status(&service, &id).await;
        assert_eq!(reply.status, 302);
        targets.push(reply.header("location").unwrap().to_owned());
    }
    let private = ["http://169.254.169.254/latest/meta-data/", "http://[::1]:1/", "file:///etc/passwd"];
    assert_eq!(targets, private);
    let script = json!({"manner": "redirects_to_private", "redirect_to": "http://127.0.0.1:9/canary"});
    let id = start(&service, "chosen", script).await;
    assert_eq!(status(&service, &id).await.header("location"), Some("http://127.0.0.1:9/canary"));
}

#[tokio::test]
async fn redirect_loop_points_at_itself() {
    let (service, _hand) = service().await;
    let id = start_as(&service, "redirect_loop").await;
    let reply = status(&service, &id).await;
    assert_eq!((reply.status, reply.header("location")), (302, Some(format!("/work/{id}").as_str())));
}

#[tokio::test]
async fn wrong_length_never_states_the_length_that_it_sends() {
    let (service, _hand) = service().await;
    let id = start_as(&service, "wrong_length").await;
    for variant in 0..5 {
        let (bytes, _) = raw_status(&service, &id).await;
        let reply = parse(&bytes);
        let stated: Vec<&str> = reply
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map(|(_, value)| value.as_str())
            .collect();
        let right = reply.body.len().to_string();
        assert!(stated.iter().any(|length| *length != right), "variant {variant}: {stated:?}");
        assert_eq!(stated.len(), if variant == 3 { 2 } else { 1 });
    }
}

#[tokio::test]
async fn errors_and_refusals_come_three_times_and_then_the_truth() {
    let (service, hand) = service().await;
    for (manner, code) in [("error_500", 500), ("rate_limited_429", 429), ("overloaded_503", 503)] {
        let id = start_as(&service, manner).await;
        for _ in 0..3 {
            let reply = status(&service, &id).await;
            assert_eq!(reply.status, code);
            assert_eq!(reply.header("retry-after"), (code != 500).then_some("1"));
        }
        assert_eq!(status(&service, &id).await.state(), "queued");
    }
    let script = json!({"seconds": 1, "manner": "error_500", "bad_answers": 1});
    let once = start(&service, "once", script).await;
    hand.advance(seconds(1));
    assert_eq!(status(&service, &once).await.status, 500);
    assert_eq!(status(&service, &once).await.state(), "done");
}

#[tokio::test]
async fn answers_twice_sends_an_answer_that_nobody_asked_for() {
    let (service, hand) = service().await;
    let id = start_as(&service, "answers_twice").await;
    hand.advance(seconds(10));
    let (bytes, _) = raw_status(&service, &id).await;
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2);
    let (done, failed) = (text.find("\"done\"").unwrap(), text.find("\"failed\"").unwrap());
    assert!(done < failed, "the second contradicts the first");
}

#[tokio::test]
async fn honest_answers_go_one_after_the_other_over_one_connection() {
    let (service, _hand) = service().await;
    let id = start_as(&service, "honest").await;
    let connections = service.requests().connections;
    let mut stream = TcpStream::connect(address(&service.url())).await.unwrap();
    for _ in 0..3 {
        assert_eq!(one_more(&mut stream, &service, &id).await, "queued");
    }
    assert_eq!(service.requests().connections, connections + 1);
}

async fn one_more(stream: &mut TcpStream, service: &SlowService, id: &str) -> String {
    let request = format!("GET /work/{id} HTTP/1.1\r\nHost: {}\r\n\r\n", service.url());
    stream.write_all(request.as_bytes()).await.expect("the connection is open");
    let mut bytes = Vec::new();
    loop {
        assert!(stream.read_buf(&mut bytes).await.expect("the connection is open") > 0);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str::<Value>(body)
        {
            return body["state"].as_str().expect("a status has a state").to_owned();
        }
    }
}
