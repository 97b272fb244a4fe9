//! The small client that carries callbacks: one POST, one status, plain HTTP.

use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TIME_LIMIT: Duration = Duration::from_secs(10);
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// A POST that did not get an answer.
#[derive(Debug, Error)]
pub enum PostError {
    /// The address is not one that this client can use.
    #[error("{0} is not a plain http:// address")]
    Address(String),
    /// The connection failed.
    #[error("no answer: {0}")]
    Connection(#[from] std::io::Error),
    /// The answer is not HTTP.
    #[error("the answer is not HTTP")]
    NotHttp,
    /// It took too long.
    #[error("no answer within {} s", TIME_LIMIT.as_secs())]
    TooLate,
}

/// Posts the body and gives the status of the answer.
pub async fn post_json(url: &str, headers: &[(&str, String)], body: &str) -> Result<u16, PostError> {
    tokio::time::timeout(TIME_LIMIT, exchange(url, headers, body)).await.map_err(|_| PostError::TooLate)?
}

async fn exchange(url: &str, headers: &[(&str, String)], body: &str) -> Result<u16, PostError> {
    let bad_address = || PostError::Address(url.to_owned());
    let rest = url.strip_prefix("http://").ok_or_else(bad_address)?;
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let target = if has_port { authority.to_owned() } else { format!("{authority}:80") };
    let mut stream = TcpStream::connect(target).await?;
    let headers: String =
        headers.iter().flat_map(|(name, value)| [*name, ": ", value.as_str(), "\r\n"]).collect();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    let mut bounded = stream.take(MAX_HEAD_BYTES as u64);
    while bounded.read_buf(&mut answer).await? > 0 {
        if let Some(status) = status_of(&answer) {
            return Ok(status);
        }
    }
    status_of(&answer).ok_or(PostError::NotHttp)
}

fn status_of(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\n').next().filter(|line| line.len() < answer.len())?;
    std::str::from_utf8(line).ok()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}
