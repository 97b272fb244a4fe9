//! A client that sends exactly what it is told to, also what a well-behaved one would not.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A request in the making.
pub struct Call<'a> {
    address: &'a str,
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    says_length: bool,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// A stream of server-sent events.
pub struct Events {
    reader: BufReader<TcpStream>,
    pub headers: BTreeMap<String, String>,
    text: String,
}

impl<'a> Call<'a> {
    pub fn new(address: &'a str, method: &str, path: &str) -> Self {
        let (method, path) = (method.to_owned(), path.to_owned());
        Self { address, method, path, headers: BTreeMap::new(), body: Vec::new(), says_length: true }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_ascii_lowercase(), value.to_owned());
        self
    }

    pub fn bearer(self, secret: &str) -> Self {
        self.header("authorization", &format!("Bearer {secret}"))
    }

    pub fn anonymous(mut self) -> Self {
        self.headers.remove("authorization");
        self
    }

    pub fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    pub fn json(self, body: &Value) -> Self {
        self.text(&body.to_string())
    }

    pub fn text(self, body: &str) -> Self {
        self.bytes(body.as_bytes()).header("content-type", "application/json")
    }

    pub fn bytes(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    /// The body is sent as it is, chunks and all.
    pub fn without_length(mut self) -> Self {
        self.says_length = false;
        self
    }

    pub async fn send(self) -> Answer {
        let mut reader = self.open().await;
        let (status, headers) = head(&mut reader).await;
        let mut body = Vec::new();
        if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
            while let Some(chunk) = chunk(&mut reader).await {
                body.extend(chunk);
            }
        } else {
            reader.read_to_end(&mut body).await.expect("the answer is whole");
        }
        Answer { status, headers, body: String::from_utf8(body).expect("answers are UTF-8") }
    }

    pub async fn follow(self) -> Events {
        let mut reader = self.open().await;
        let (status, headers) = head(&mut reader).await;
        assert_eq!(status, 200);
        Events { reader, headers, text: String::new() }
    }

    /// The status alone; the connection is given up then.
    pub async fn head_only(self) -> u16 {
        head(&mut self.open().await).await.0
    }

    async fn open(&self) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).await.expect("the server listens");
        let mut head =
            format!("{} {} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
        }
        if !self.body.is_empty() && self.says_length {
            head.extend(["content-length: ", &self.body.len().to_string(), "\r\n"]);
        }
        head += "\r\n";
        stream.write_all(head.as_bytes()).await.expect("it takes the head");
        // A server that refuses by the head alone need not read the rest.
        let _ = stream.write_all(&self.body).await;
        BufReader::new(stream)
    }
}

impl Answer {
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The value of an answer that is a success.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        assert_eq!(self.headers["content-type"], "application/json");
        self.value()
    }

    /// The problem of an answer that is a refusal, whose form is checked here for all.
    pub fn problem(&self, status: u16, code: &str) -> Value {
        let problem = self.value();
        assert_eq!((self.status, problem["code"].as_str()), (status, Some(code)), "{}", self.body);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(problem["status"], status);
        assert!(problem["detail"].is_string() && problem["type"].is_string() && problem["title"].is_string());
        problem
    }
}

impl Events {
    /// The next event, without comments: its fields.
    pub async fn next(&mut self) -> Option<BTreeMap<String, String>> {
        loop {
            let event = self.block().await?;
            let fields: BTreeMap<String, String> = event
                .lines()
                .filter(|line| !line.starts_with(':'))
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            if !fields.is_empty() {
                return Some(fields);
            }
        }
    }

    /// The next event that carries data: its id and the fact.
    pub async fn fact(&mut self) -> Option<(u64, Value)> {
        loop {
            let event = self.next().await?;
            if let (Some(data), Some(id)) = (event.get("data"), event.get("id")) {
                let id = id.parse().expect("an id is a position");
                return Some((id, serde_json::from_str(data).expect("data is JSON")));
            }
        }
    }

    /// The data of the next event of this name.
    pub async fn named(&mut self, name: &str) -> Value {
        loop {
            let event = self.next().await.expect("the stream goes on");
            if event.get("event").is_some_and(|event| event == name) {
                return serde_json::from_str(&event["data"]).expect("data is JSON");
            }
        }
    }

    /// Waits for a block that says this.
    pub async fn until(&mut self, says: &str) {
        while !self.block().await.expect("the stream goes on").contains(says) {}
    }

    /// The next block, comment or event.
    pub async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let rest = self.text.split_off(end + 2);
                return Some(std::mem::replace(&mut self.text, rest));
            }
            let chunk = chunk(&mut self.reader).await?;
            self.text += std::str::from_utf8(&chunk).expect("events are UTF-8");
        }
    }
}

async fn head(reader: &mut BufReader<TcpStream>) -> (u16, BTreeMap<String, String>) {
    let mut line = String::new();
    reader.read_line(&mut line).await.expect("there is an answer");
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("it has a status");
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).await.expect("the head is whole");
        let Some((name, value)) = line.trim_end().split_once(": ") else { return (status, headers) };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
}

/// One chunk of the body; nothing at its end.
async fn chunk(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut line = String::new();
    if reader.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let size = usize::from_str_radix(line.trim(), 16).expect("a chunk has a size");
    let mut bytes = vec![0; size + 2];
    reader.read_exact(&mut bytes).await.ok()?;
    bytes.truncate(size);
    (size > 0).then_some(bytes)
}
