//! What goes back: an honest response, or bytes that only look like one.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const FLOOD_CHUNK_BYTES: usize = 64 * 1024;

/// An honest response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Besides the length, which is always right.
    pub headers: Vec<(String, String)>,
    /// As it goes out.
    pub body: Vec<u8>,
}

/// How a response, or something else, is sent.
#[derive(Clone, Debug)]
pub enum Answer {
    /// As it should be.
    Whole(Response),
    /// As it should be, but late.
    Late(Duration, Response),
    /// A byte, a pause, a byte.
    Dripped(Duration, Response),
    /// Nothing for that long, then the end of the connection.
    Silence(Duration),
    /// The connection is closed without a byte.
    Dropped,
    /// Half of it, then the connection is reset.
    CutOff(Response),
    /// A response whose body is `filler` so many times between `prefix` and `suffix`.
    Flood {
        /// How the body begins.
        prefix: Vec<u8>,
        /// The byte in the middle.
        filler: u8,
        /// How often.
        count: usize,
        /// How the body ends.
        suffix: Vec<u8>,
    },
    /// Just these bytes.
    Bytes(Vec<u8>, Then),
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The next request may come.
    KeepOpen,
    /// It is closed.
    Close,
}

impl Response {
    /// A JSON body under a status.
    pub fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        Self { status, headers, body: body.to_string().into_bytes() }
    }

    /// A refusal with a code for programs and a sentence for people.
    pub fn refusal(status: u16, code: &str, message: &str) -> Self {
        Self::json(status, &serde_json::json!({"error": {"code": code, "message": message}}))
    }

    /// With one more header.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With this header instead of any of that name.
    pub fn replacing(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.with(name, value)
    }

    /// The bytes that go out, with the right length.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_with(&format!("Content-Length: {}\r\n", self.body.len()))
    }

    /// The bytes that go out, with other lines in place of the length.
    pub fn bytes_with(&self, length_lines: &str) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str(length_lines);
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Self::Whole(response)
    }
}

/// Sends it; an error is a client that is gone, which is the client's affair.
pub(super) async fn send(stream: &mut TcpStream, answer: Answer) -> std::io::Result<Then> {
    match answer {
        Answer::Whole(response) => {
            stream.write_all(&response.bytes()).await?;
            Ok(Then::KeepOpen)
        }
        Answer::Late(wait, response) => {
            if client_left_within(stream, wait).await {
                return Ok(Then::Close);
            }
            stream.write_all(&response.bytes()).await?;
            Ok(Then::KeepOpen)
        }
        Answer::Dripped(pause, response) => {
            for byte in response.bytes() {
                stream.write_all(&[byte]).await?;
                if client_left_within(stream, pause).await {
                    return Ok(Then::Close);
                }
            }
            Ok(Then::KeepOpen)
        }
        Answer::Silence(length) => {
            client_left_within(stream, length).await;
            Ok(Then::Close)
        }
        Answer::Dropped => Ok(Then::Close),
        Answer::CutOff(response) => {
            let bytes = response.bytes();
            stream.write_all(&bytes[..bytes.len() - response.body.len() / 2 - 1]).await?;
            stream.flush().await?;
            // Closed without lingering, a connection is reset.
            stream.set_zero_linger()?;
            Ok(Then::Close)
        }
        Answer::Flood { prefix, filler, count, suffix } => {
            flood(stream, &prefix, filler, count, &suffix).await?;
            Ok(Then::KeepOpen)
        }
        Answer::Bytes(bytes, then) => {
            stream.write_all(&bytes).await?;
            Ok(then)
        }
    }
}

async fn flood(
    stream: &mut TcpStream,
    prefix: &[u8],
    filler: u8,
    count: usize,
    suffix: &[u8],
) -> std::io::Result<()> {
    let length = prefix.len() + count + suffix.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(prefix).await?;
    let chunk = vec![filler; FLOOD_CHUNK_BYTES.min(count)];
    let mut left = count;
    while left > 0 {
        let now = left.min(chunk.len());
        stream.write_all(&chunk[..now]).await?;
        left -= now;
    }
    stream.write_all(suffix).await
}

/// Waits, but not for a client that has closed.
async fn client_left_within(stream: &mut TcpStream, wait: Duration) -> bool {
    let gone = async {
        let mut ignored = [0; 256];
        while matches!(stream.read(&mut ignored).await, Ok(1..)) {}
    };
    tokio::time::timeout(wait, gone).await.is_ok()
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        302 => "Found",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
