//! Slow, silent and greedy clients, on real sockets: each loses its own connection, and nobody else notices.

use std::time::Duration;

use serde_json::json;
use server::ServerLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::given::{World, working_world_with, world, world_with};

const SHORT: Duration = Duration::from_millis(300);

/// What comes until the server closes; a cut connection may end with an error.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8(bytes).expect("answers are UTF-8")
}

async fn connect(world: &World) -> TcpStream {
    TcpStream::connect(&world.address).await.expect("the server listens")
}

async fn send(world: &World, text: &str) -> TcpStream {
    let mut stream = connect(world).await;
    stream.write_all(text.as_bytes()).await.expect("it is taken in");
    stream
}

fn head(world: &World, method: &str, path: &str, more: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\n{more}\r\n", world.admin)
}

#[tokio::test]
async fn head_that_drips_is_cut_and_so_is_a_client_that_says_nothing() {
    let world = world_with(ServerLimits { head_within: SHORT, ..ServerLimits::default() }).await;
    let mut silent = connect(&world).await;
    let mut dripping = send(&world, "GET /jobs HT").await;
    let dripped = async {
        // It goes on until the server has had enough; that a byte comes now and then does not help it.
        while dripping.write_all(b"T").await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    };
    tokio::join!(dripped, rest(&mut silent));
    let mut kept_open = send(&world, &head(&world, "GET", "/jobs", "")).await;
    assert!(rest(&mut kept_open).await.starts_with("HTTP/1.1 200"), "an idle connection is closed, too");
    world.get("/jobs").send().await.ok();
}

#[tokio::test]
async fn body_that_drips_is_cut_with_a_word_and_leaves_nothing() {
    let world = world_with(ServerLimits { body_within: SHORT, ..ServerLimits::default() }).await;
    let more = "content-type: application/json\r\ncontent-length: 100\r\n";
    let mut dripping = send(&world, &(head(&world, "POST", "/jobs", more) + "{")).await;
    let (mut reader, mut writer) = dripping.split();
    let mut answer = vec![0; 12];
    tokio::select! {
        read = reader.read_exact(&mut answer) => { read.unwrap(); }
        () = async {
            loop {
                tokio::time::sleep(SHORT / 10).await;
                let _ = writer.write_all(b" ").await;
            }
        } => {}
    }
    assert_eq!(answer, b"HTTP/1.1 408");
    assert!(rest(&mut dripping).await.contains(r#""code":"request_timeout""#));
    assert_eq!(world.get("/jobs").send().await.ok()["work"], json!([]));
}

#[tokio::test]
async fn clients_that_only_send_slowly_take_no_place_from_those_that_ask() {
    let limits = ServerLimits { requests: 1, ..ServerLimits::default() };
    let world = world_with(limits).await;
    let more = "content-type: application/json\r\ncontent-length: 100\r\n";
    let mut slow = Vec::new();
    for _ in 0..20 {
        slow.push(send(&world, &(head(&world, "POST", "/jobs", more) + "{")).await);
    }
    world.create(json!({})).await;
}

// conforms: O121
#[tokio::test]
async fn whoever_comes_when_all_connections_are_taken_is_sent_away_until_later() {
    let limits = ServerLimits {
        connections: 4,
        head_within: Duration::from_mins(1),
        head_within_when_crowded: SHORT * 10,
        ..ServerLimits::default()
    };
    let world = world_with(limits).await;
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.push(connect(&world).await);
    }
    let sent_away = world.get("/jobs").send().await;
    sent_away.problem(503, "overloaded");
    assert_eq!(sent_away.headers["retry-after"], "1");
    // The last to come had the least time; then there is room again, while the first still has its connection.
    rest(silent.last_mut().unwrap()).await;
    world.get("/jobs").send().await.ok();
    assert!(silent[0].try_read(&mut [0]).is_err(), "the first has not been cut yet");
}

// conforms: O121
#[tokio::test]
async fn requests_at_once_are_bounded_and_probes_are_always_answered() {
    let world = world_with(ServerLimits { requests: 1, ..ServerLimits::default() }).await;
    let id = world.create(json!({ "executor": "stays" })).await;
    // It holds its slot until the attempt has left dispatching.
    let run = head(&world, "POST", &format!("/jobs/{id}/run"), "content-length: 0\r\n");
    let mut running = world.get(&format!("/facts/stream?job={id}")).follow().await;
    let _asked = send(&world, &run).await;
    while running.fact().await.unwrap().1["kind"] != "job.dispatched/1" {}
    let sent_away = world.get("/jobs").send().await;
    sent_away.problem(503, "overloaded");
    assert_eq!(sent_away.headers["retry-after"], "1");
    world.get("/healthz").send().await.ok();
    world.get("/readyz").send().await.ok();
}

// conforms: O27 O121
#[tokio::test]
async fn calls_at_once_are_bounded_and_whoever_is_sent_away_was_not_accepted() {
    let world = working_world_with(ServerLimits { requests: 1, ..ServerLimits::default() }).await;
    // It waits for its result and holds the one place for that, but none of a request.
    let body = json!({ "timing": { "timeout_ms": 5_000 } }).to_string();
    let more = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    let mut created = world.get("/facts/stream").follow().await;
    let waits = head(&world, "POST", "/v1/capabilities/stays/invoke", &more) + &body;
    let _waits = send(&world, &waits).await;
    while created.fact().await.unwrap().1["kind"] != "job.dispatched/1" {}
    let call = |executor: &str, mode: &str| {
        let body = json!({ "input": {}, "timing": { "mode": mode, "timeout_ms": 5_000 } });
        world.post(&format!("/v1/capabilities/{executor}/invoke"), body)
    };
    let began = std::time::Instant::now();
    let directive = json!({
        "schema": "sensorium-directive.v1", "schema/v": 1, "directive/id": "d-1", "action_id": "echo",
        "directive/issued_at": "2026-01-01T00:00:00Z", "issuer": { "module_id": "intake" },
        "parameters": {}, "timing": { "timeout_ms": 5_000, "mode": "sync" },
    });
    let directed = world.post("/v1/capabilities/sensorium.directive.invoke/invoke", directive);
    for sent_away in [call("echo", "sync").send().await, directed.send().await] {
        sent_away.problem(503, "overloaded");
        assert_eq!(sent_away.headers["retry-after"], "1");
    }
    assert!(began.elapsed() < Duration::from_secs(4), "nobody waits to be sent away");
    assert_eq!(world.get("/jobs").send().await.ok()["work"].as_array().unwrap().len(), 1);
    assert_eq!(
        call("defers", "async").send().await.status,
        202,
        "whoever takes a handle needs no such place"
    );
}

#[tokio::test]
async fn streams_are_bounded_apart_from_requests() {
    let world = world_with(ServerLimits { streams: 2, ..ServerLimits::default() }).await;
    let first = world.get("/facts/stream").follow().await;
    let mut second = world.get("/facts/stream").follow().await;
    let sent_away = world.get("/facts/stream").send().await;
    sent_away.problem(503, "too_many_streams");
    assert_eq!(sent_away.headers["retry-after"], "1");
    let id = world.create(json!({})).await;
    assert_eq!(second.fact().await.unwrap().1["stream"], id.as_str());
    drop(first);
    // The server notices with the next heartbeat that nobody reads.
    while world.get("/facts/stream").head_only().await != 200 {}
}

#[tokio::test]
async fn bodies_held_at_once_are_bounded() {
    let world = world_with(ServerLimits { body_bytes: 10_000, ..ServerLimits::default() }).await;
    world.post("/jobs", json!({ "prompt": "x".repeat(9_000) })).send().await.ok();
    let large = json!({ "prompt": "x".repeat(20_000) });
    world.post("/jobs", large).send().await.problem(503, "overloaded");
    world.post("/jobs", json!({ "prompt": "x".repeat(9_000) })).send().await.ok();
}

#[tokio::test]
async fn client_that_takes_nothing_in_is_cut() {
    let limits = ServerLimits { connections: 1, write_within: SHORT, ..ServerLimits::default() };
    let world = world_with(limits).await;
    world.post("/jobs", json!({ "prompt": "x".repeat(1_000_000) })).send().await.ok();
    let path = "/jobs?limit=1";
    let mut greedy = head(&world, "GET", path, "");
    // Asked for far more than the buffers between us hold.
    greedy = greedy.repeat(64);
    let _greedy = send(&world, &greedy).await;
    let answer = loop {
        let answer = world.get("/readyz").send().await;
        if answer.status == 200 {
            break answer;
        }
        answer.problem(503, "overloaded");
        tokio::time::sleep(SHORT / 10).await;
    };
    answer.ok();
}

#[tokio::test]
async fn answers_that_nobody_takes_in_are_bounded_and_their_room_comes_back() {
    let limits =
        ServerLimits { answer_bytes: 24_000_000, write_within: SHORT * 40, ..ServerLimits::default() };
    let world = world_with(limits).await;
    // More than the buffers between us hold.
    for _ in 0..8 {
        world.post("/jobs", json!({ "prompt": "x".repeat(1_000_000) })).send().await.ok();
    }
    let large = head(&world, "GET", "/jobs?limit=8", "connection: close\r\n");
    let mut greedy = Vec::new();
    let sent_away = loop {
        assert!(greedy.len() < 20, "as many answers as anybody asks for wait at once");
        let mut next = send(&world, &large).await;
        let mut begins = [0; 12];
        next.read_exact(&mut begins).await.unwrap();
        if begins == *b"HTTP/1.1 503" {
            break rest(&mut next).await;
        }
        // It has the room until it is cut.
        greedy.push(next);
    };
    assert!(sent_away.contains("too many large answers wait to be read"), "{sent_away}");
    assert!(sent_away.contains("retry-after: 1"), "{sent_away}");
    // What is small is answered all the while.
    world.get("/jobs?limit=1&state=failed").send().await.ok();
    world.create(json!({})).await;
    let comes_back = async { while world.get("/jobs?limit=8").send().await.status != 200 {} };
    tokio::time::timeout(SHORT * 200, comes_back).await.expect("those who took nothing in are cut");
}

#[tokio::test]
async fn open_connection_does_not_keep_the_server_from_stopping() {
    let world = world().await;
    let mut silent = connect(&world).await;
    let mut idle = send(&world, &head(&world, "GET", "/healthz", "")).await;
    idle.readable().await.unwrap();
    world.stop_serving().await;
    assert!(rest(&mut idle).await.starts_with("HTTP/1.1 200"));
    assert_eq!(rest(&mut silent).await, "");
}
