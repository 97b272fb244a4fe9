//! A connection to the daemon that is kept: plain HTTP/1.1, one request at a time. It costs little, because the load generator
//! shares the machine with what it measures. It knows only what this daemon sends: a head, and a body of a stated length.

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::process::Address;

/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 16 * 1_048_576;
const HEAD_ENDS: &[u8] = b"\r\n\r\n";

/// One kept connection.
pub struct Connection {
    stream: TcpStream,
    /// What every request says besides its own line and length.
    headers: String,
    request: Vec<u8>,
    received: Vec<u8>,
}

impl Connection {
    /// Connects as the administrator.
    pub async fn to(address: &Address) -> Result<Self> {
        let stream = TcpStream::connect(&address.host).await?;
        stream.set_nodelay(true)?;
        let headers = format!(
            "Host: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
            address.host, address.token
        );
        Ok(Self { stream, headers, request: Vec::new(), received: Vec::new() })
    }

    /// Sends a body; its answer.
    pub async fn post(&mut self, path: &str, body: &str) -> Result<&[u8]> {
        self.ask("POST", path, body).await
    }

    /// Publishes an event; it is written down.
    pub async fn publish(&mut self, event: &str) -> Result<()> {
        self.ask("POST", "/events", event).await.map(|_| ())
    }

    /// Asks for a page of JSON.
    pub async fn read<T: DeserializeOwned>(&mut self, path: &str) -> Result<T> {
        Ok(serde_json::from_slice(self.ask("GET", path, "").await?)?)
    }

    /// Asks for a page of text.
    pub async fn text(&mut self, path: &str) -> Result<&str> {
        Ok(std::str::from_utf8(self.ask("GET", path, "").await?)?)
    }

    /// Sends a body; whether it was taken. Whoever is sent away is told when to come back.
    pub async fn offer(&mut self, path: &str, body: &str) -> Result<bool> {
        self.send("POST", path, body).await?;
        let begin = self.receive().await?;
        let head = &self.received[..begin];
        let is_sent_away = [&b"HTTP/1.1 429"[..], b"HTTP/1.1 503"].iter().any(|line| head.starts_with(line));
        if is_sent_away && find(head, b"retry-after: ").is_some() {
            return Ok(false);
        }
        self.taken("POST", path, begin).map(|_| true)
    }

    async fn ask(&mut self, verb: &str, path: &str, body: &str) -> Result<&[u8]> {
        self.send(verb, path, body).await?;
        let begin = self.receive().await?;
        self.taken(verb, path, begin)
    }

    /// The answer that was received, if it is a good one.
    fn taken(&self, verb: &str, path: &str, begin: usize) -> Result<&[u8]> {
        let (head, answer) = self.received.split_at(begin);
        if !head.starts_with(b"HTTP/1.1 20") {
            let told = String::from_utf8_lossy(&self.received);
            bail!("{verb} {path} was answered: {}", told.chars().take(2_000).collect::<String>());
        }
        Ok(answer)
    }

    /// Asks, and does not wait for the answer.
    pub async fn send(&mut self, verb: &str, path: &str, body: &str) -> Result<()> {
        self.request.clear();
        let length = body.len();
        let head = format!("{verb} {path} HTTP/1.1\r\n{}Content-Length: {length}\r\n\r\n", self.headers);
        self.request.extend_from_slice(head.as_bytes());
        self.request.extend_from_slice(body.as_bytes());
        Ok(self.stream.write_all(&self.request).await?)
    }

    /// Receives one answer; where its body begins.
    async fn receive(&mut self) -> Result<usize> {
        self.received.clear();
        let mut whole = None;
        loop {
            if self.stream.read_buf(&mut self.received).await? == 0 {
                bail!("the daemon closed the connection");
            }
            if whole.is_none()
                && let Some(end) = find(&self.received, HEAD_ENDS)
            {
                let begin = end + HEAD_ENDS.len();
                whole = Some((begin, begin + content_length(&self.received[..end])?));
            }
            match whole {
                Some((begin, end)) if self.received.len() >= end => return Ok(begin),
                Some((_, end)) if end > MAX_ANSWER_BYTES => bail!("an answer of {end} bytes is too long"),
                Some(_) | None => {}
            }
        }
    }
}

fn content_length(head: &[u8]) -> Result<usize> {
    let head = std::str::from_utf8(head)?;
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let found = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    Ok(found.context("the answer states no length")?.1.trim().parse()?)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
