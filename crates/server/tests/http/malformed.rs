//! Requests that are none, and requests that two readers would take for different ones: whatever follows such a request on its
//! connection is not taken for another, nothing is made, and the server goes on.

use std::time::Duration;

use serde_json::json;
use server::ServerLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::given::{World, world_with};

/// The server answers or cuts; who hears neither has found a hole.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the server waits for more.
const SHORT: Duration = Duration::from_millis(500);
/// Requests that are tried at the same time.
const AT_ONCE: usize = 30;
/// Clients that leave in the middle of a request.
const HALVES: usize = 500;

/// Sends these bytes, says no more, and gives what comes until the server closes. It stays open to the end: a server that thinks that
/// nobody listens any more would not look at what follows.
async fn answer(world: &World, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(&world.address).await.expect("the server listens");
    // A server that has heard enough may close before it has heard all.
    let _ = stream.write_all(bytes).await;
    let mut heard = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut heard)).await;
    assert!(read.is_ok(), "neither answered nor cut: {:?}", String::from_utf8_lossy(bytes));
    String::from_utf8_lossy(&heard).into_owned()
}

/// A whole create, as it would be smuggled in.
fn smuggled(world: &World) -> String {
    let body = json!({ "title": "smuggled" }).to_string();
    format!(
        "POST /jobs HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        world.admin,
        body.len()
    )
}

/// The head of a request that may be made, up to what says how long it is.
fn head(world: &World, verb: &str, path: &str) -> String {
    let (token, json) = (&world.admin, "application/json");
    format!(
        "{verb} {path} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {token}\r\ncontent-type: {json}\r\n"
    )
}

/// A server that soon loses patience with those who say no more.
async fn impatient_world() -> World {
    world_with(ServerLimits { head_within: SHORT, body_within: SHORT, ..ServerLimits::default() }).await
}

async fn titles(world: &World) -> Vec<String> {
    let listed = world.get("/jobs?limit=1000").send().await.ok();
    let work = listed["work"].as_array().expect("a list").clone();
    work.iter().map(|job| job["title"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Heads about whose length two readers could differ. In each the body says that it is over, to one of them.
const AMBIGUOUS: [&str; 30] = [
    "content-length: {n}\r\ntransfer-encoding: chunked\r\n",
    "transfer-encoding: chunked\r\ncontent-length: {n}\r\n",
    "content-length: 5\r\ncontent-length: {n}\r\n",
    "content-length: {n}\r\ncontent-length: 5\r\n",
    "content-length: 5, {n}\r\n",
    "content-length: 5 {n}\r\n",
    "content-length: +5\r\n",
    "content-length: -5\r\n",
    "content-length: 0x5\r\n",
    "content-length: 5.0\r\n",
    "content-length: 5e0\r\n",
    "content-length: 18446744073709551621\r\n",
    "content-length: \u{b}5\r\n",
    "content-length : 5\r\n",
    "content-length\t: 5\r\n",
    " content-length: 5\r\n",
    "content-length:\r\n 5\r\n",
    "content-length: \0 5\r\n",
    "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
    "transfer-encoding: chunked, identity\r\n",
    "transfer-encoding: identity\r\n",
    "transfer-encoding: xchunked\r\n",
    "transfer-encoding: chunked;q=0\r\n",
    "transfer-encoding: gzip\r\n",
    "transfer-encoding : chunked\r\n",
    "transfer-encoding\u{b}: chunked\r\n",
    "transfer-encoding:\r\n chunked\r\n",
    "x: y\rtransfer-encoding: chunked\r\n",
    "x: y\0\r\ntransfer-encoding: identity\r\n",
    "transfer-encoding: \"chunked\"\r\n",
];

/// Bodies in chunks about whose end two readers could differ.
const CHUNKS: [&str; 9] = [
    "0x0\r\n\r\n",
    "-1\r\n\r\n",
    "+0\r\n\r\n",
    "ffffffffffffffff\r\n",
    "10000000000000000\r\nx",
    "5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n",
    "5 \r\nhello0\r\n\r\n",
    "5\nhello\n0\n\n",
    "5\r\nhellohello\r\n0\r\n\r\n",
];

#[tokio::test]
async fn nothing_that_follows_an_ambiguous_request_is_taken_for_another() {
    let world = impatient_world().await;
    let hidden = smuggled(&world);
    let mut requests = Vec::new();
    for ambiguous in AMBIGUOUS {
        let headers = ambiguous.replace("{n}", &(hidden.len() + 5).to_string());
        for end in ["hello", "0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"] {
            for (verb, path) in [("POST", "/jobs"), ("GET", "/jobs")] {
                requests.push(format!("{}{headers}\r\n{end}{hidden}", head(&world, verb, path)));
            }
        }
    }
    for some in requests.chunks(AT_ONCE) {
        let answers = some.iter().map(|request| answer(&world, request.as_bytes()));
        for (request, heard) in some.iter().zip(futures::future::join_all(answers).await) {
            assert!(heard.matches("HTTP/1.1 ").count() <= 1, "{request:?}: {heard}");
        }
    }
    assert_eq!(titles(&world).await, Vec::<String>::new(), "after {} requests", requests.len());
}

#[tokio::test]
async fn chunks_that_are_none_end_their_connection_and_hide_nothing() {
    let world = impatient_world().await;
    let hidden = smuggled(&world);
    for chunks in CHUNKS {
        let head = head(&world, "POST", "/jobs") + "transfer-encoding: chunked\r\n\r\n";
        let heard = answer(&world, format!("{head}{chunks}{hidden}").as_bytes()).await;
        assert!(!heard.contains("HTTP/1.1 200"), "{chunks:?}: {heard}");
    }
    assert_eq!(titles(&world).await, Vec::<String>::new());
}

/// Two requests after each other on one connection are two: otherwise the tests above would prove nothing.
#[tokio::test]
async fn request_that_follows_a_clear_one_is_taken() {
    let world = impatient_world().await;
    let hidden = smuggled(&world);
    for length in
        ["content-length: 5\r\n\r\nhello", "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"]
    {
        let request = format!("{}{length}{hidden}", head(&world, "POST", "/jobs"));
        let heard = answer(&world, request.as_bytes()).await;
        assert_eq!(heard.matches("HTTP/1.1 ").count(), 2, "{heard}");
    }
    assert_eq!(titles(&world).await, ["smuggled", "smuggled"]);
}

#[tokio::test]
async fn what_is_no_request_is_refused_or_cut_and_makes_nothing() {
    let world = impatient_world().await;
    let long = "x".repeat(1_000_000);
    let many = "a: b\r\n".repeat(100_000);
    let garbage: Vec<u8> =
        (0..100_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
    let texts = [
        String::new(),
        "\r\n\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET /jobs\r\n\r\n".to_owned(),
        "GET /jobs HTTP/0.9\r\n\r\n".to_owned(),
        "GET /jobs HTTP/2.0\r\nhost: test\r\n\r\n".to_owned(),
        "GET /jobs HTTP/1.1\r\nhost: test\r\nno colon\r\n\r\n".to_owned(),
        "GET /jobs HTTP/1.1\r\n: no name\r\n\r\n".to_owned(),
        "GET /\0 HTTP/1.1\r\nhost: test\r\n\r\n".to_owned(),
        "GET /jobs HTTP/1.1 \r\nhost: test\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}".to_owned(),
        format!("GET /{long} HTTP/1.1\r\nhost: test\r\n\r\n"),
        format!("GET /jobs HTTP/1.1\r\nhost: test\r\nx: {long}\r\n\r\n"),
        format!("GET /jobs HTTP/1.1\r\nhost: test\r\n{long}: x\r\n\r\n"),
        format!("GET /jobs HTTP/1.1\r\nhost: test\r\n{many}\r\n"),
        long.clone(),
    ];
    for text in &texts {
        let heard = answer(&world, text.as_bytes()).await;
        let shown: String = text.chars().take(60).collect();
        assert!(heard.is_empty() || heard.starts_with("HTTP/1."), "{shown:?}: {heard}");
        assert!(!heard.contains("HTTP/1.1 200") && !heard.contains("HTTP/1.1 5"), "{shown:?}: {heard}");
    }
    assert!(!answer(&world, &garbage).await.contains("HTTP/1.1 200"));
    assert_eq!(titles(&world).await, Vec::<String>::new());
    world.create(json!({ "title": "as ever" })).await;
}

#[tokio::test]
async fn clients_that_leave_in_the_middle_of_a_request_leave_nothing_behind() {
    let world = world_with(ServerLimits { requests: 4, connections: 32, ..ServerLimits::default() }).await;
    let whole = smuggled(&world);
    for half in 0..HALVES {
        let mut stream = TcpStream::connect(&world.address).await.expect("the server listens");
        // Everything but the last byte at most.
        let _ = stream.write_all(&whole.as_bytes()[..half * (whole.len() - 1) / HALVES]).await;
        drop(stream);
    }
    // Each of them had a connection, and there are only so many: all of them came back.
    loop {
        let answer = world.get("/jobs").send().await;
        if answer.status == 200 {
            break;
        }
        answer.problem(503, "overloaded");
    }
    assert_eq!(titles(&world).await, Vec::<String>::new());
    world.create(json!({ "title": "as ever" })).await;
}
