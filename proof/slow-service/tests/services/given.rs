//! A service on a clock that is moved by hand, and a client that sees every byte.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use slow_service::{HandClock, Measures, Options, SlowService};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_secs(20);

/// What came back, read by the rules.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    pub fn state(&self) -> String {
        self.json()["state"].as_str().expect("a status has a state").to_owned()
    }
}

/// A service whose work goes on when the clock is moved.
pub async fn service() -> (SlowService, HandClock) {
    let hand = HandClock::new();
    let options = Options { clock: hand.clock(), measures: Measures::small(), ..Options::default() };
    (SlowService::start(options).await.expect("a free port"), hand)
}

pub fn address(url: &str) -> SocketAddr {
    url.strip_prefix("http://").expect("plain http").parse().expect("an address")
}

/// Every byte of the answer until the service closes, and whether it ended with a reset.
pub async fn raw(url: &str, method: &str, target: &str, headers: &str, body: &str) -> (Vec<u8>, bool) {
    let mut stream = TcpStream::connect(address(url)).await.expect("the service listens");
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("the request goes out");
    let mut bytes = Vec::new();
    let reset = stream.read_to_end(&mut bytes).await.is_err();
    (bytes, reset)
}

pub fn parse(bytes: &[u8]) -> Reply {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut headers);
    let length = head.parse(bytes).expect("the head is HTTP").unwrap();
    let headers = head
        .headers
        .iter()
        .map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned()))
        .collect();
    Reply { status: head.code.expect("a status"), headers, body: bytes[length..].to_vec() }
}

pub async fn ask(url: &str, method: &str, target: &str, headers: &str, body: &str) -> Reply {
    let (bytes, _) = raw(url, method, target, headers, body).await;
    parse(&bytes)
}

pub async fn start_reply(service: &SlowService, key: &str, script: &Value) -> Reply {
    ask(&service.url(), "POST", "/work", &format!("Idempotency-Key: {key}\r\n"), &script.to_string()).await
}

/// Starts work and gives its id.
pub async fn start(service: &SlowService, key: &str, script: Value) -> String {
    let reply = start_reply(service, key, &script).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.json()["id"].as_str().expect("an id").to_owned()
}

/// Starts work of ten seconds in that manner and gives its id.
pub async fn start_as(service: &SlowService, manner: &str) -> String {
    start(service, manner, json!({"seconds": 10, "manner": manner, "result": {"n": 1}})).await
}

pub async fn status(service: &SlowService, id: &str) -> Reply {
    ask(&service.url(), "GET", &format!("/work/{id}"), "", "").await
}

pub async fn raw_status(service: &SlowService, id: &str) -> (Vec<u8>, bool) {
    raw(&service.url(), "GET", &format!("/work/{id}"), "", "").await
}

pub async fn cancel(service: &SlowService, id: &str) -> Reply {
    ask(&service.url(), "POST", &format!("/work/{id}/cancel"), "", "").await
}

pub fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// What is waited for comes, or the test says that it did not. Nothing depends on how soon.
pub async fn in_time<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, wait).await.expect("what was waited for never came")
}

/// Someone who waits for callbacks.
pub struct Receiver {
    listener: TcpListener,
    pub url: String,
}

impl Receiver {
    pub async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/told?token=t", listener.local_addr().expect("a bound address"));
        Self { listener, url }
    }

    /// The next callback, answered with 200.
    pub async fn next(&self) -> Value {
        self.next_with_headers().await.1
    }

    /// The same with the head of the request.
    pub async fn next_with_headers(&self) -> (String, Value) {
        let (mut stream, _) = in_time(self.listener.accept()).await.expect("the listener is open");
        let mut bytes = Vec::new();
        let told = loop {
            assert!(stream.read_buf(&mut bytes).await.expect("the connection is open") > 0, "it is whole");
            let text = String::from_utf8_lossy(&bytes);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            assert!(head.starts_with("POST /told?token=t HTTP/1.1\r\n"), "{head}");
            if let Ok(body) = serde_json::from_str::<Value>(body) {
                break (format!("{head}\r\n"), body);
            }
        };
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(answer).await.expect("the connection is open");
        told
    }
}
