//! One HTTP request on a connection of its own, sent as the plan says: whole, impatiently, cut off.
//!
//! What comes back tells apart what a client must tell apart: nothing was sent, it was answered, or nobody knows.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::plan::Sending;

const CONNECT_WITHIN: Duration = Duration::from_secs(1);
const MAX_ANSWER_BYTES: usize = 64 * 1_048_576;
const REPLAYED: &str = "idempotent-replayed";

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub key: Option<&'a str>,
    pub body: Option<&'a str>,
    /// For the answer.
    pub within: Duration,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nobody was there, or not all of it was sent: nothing can have happened.
    Never,
    /// It was answered.
    Answered(Answer),
    /// All of it was sent, and no answer came: it may have happened.
    Unanswered,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The same was answered before.
    pub replayed: bool,
    pub body: String,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// It says that nothing happened; anything from 500 on says that nobody knows.
    pub fn is_refusal(&self) -> bool {
        (400..500).contains(&self.status)
    }

    /// What it says, if it is JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// Sends a request to a daemon at `http://address`.
pub fn send(url: &str, token: &str, request: &Request<'_>, sending: Sending) -> Sent {
    let Some(address) = url.strip_prefix("http://") else { return Sent::Never };
    let Ok(socket) = address.parse::<SocketAddr>() else { return Sent::Never };
    let Ok(mut stream) = TcpStream::connect_timeout(&socket, CONNECT_WITHIN) else { return Sent::Never };
    let bytes = bytes_of(address, token, request);
    let (whole, within) = match sending {
        Sending::Half => (bytes.len() - request.body.map_or(2, str::len).div_ceil(2), Duration::ZERO),
        Sending::Cut => (bytes.len(), Duration::ZERO),
        Sending::Impatient(within) => (bytes.len(), within),
        Sending::Whole => (bytes.len(), request.within),
    };
    let until = Instant::now() + within.max(CONNECT_WITHIN);
    if write(&mut stream, &bytes[..whole], until).is_err() {
        // How much of it arrived is not known here.
        return Sent::Unanswered;
    }
    if sending == Sending::Half {
        return Sent::Never;
    }
    match read(&mut stream, Instant::now() + within) {
        Some(answer) => Sent::Answered(answer),
        None => Sent::Unanswered,
    }
}

fn bytes_of(host: &str, token: &str, request: &Request<'_>) -> Vec<u8> {
    let Request { method, path, key, body, .. } = request;
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n"
    );
    if let Some(key) = key {
        let _ = write!(head, "idempotency-key: {key}\r\n");
    }
    if let Some(body) = body {
        let _ = write!(head, "content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    head.push_str("\r\n");
    head.push_str(body.unwrap_or_default());
    head.into_bytes()
}

fn write(stream: &mut TcpStream, bytes: &[u8], until: Instant) -> std::io::Result<()> {
    stream.set_write_timeout(Some(left(until)))?;
    stream.write_all(bytes)?;
    stream.flush()
}

/// What is left of the time; sockets take no zero.
fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

/// The whole answer, or nothing.
fn read(stream: &mut TcpStream, until: Instant) -> Option<Answer> {
    let mut bytes = Vec::new();
    let mut page = [0; 16_384];
    loop {
        if let Some(answer) = parsed(&bytes) {
            return Some(answer);
        }
        if Instant::now() >= until || bytes.len() > MAX_ANSWER_BYTES {
            return None;
        }
        stream.set_read_timeout(Some(left(until))).ok()?;
        match stream.read(&mut page) {
            Ok(0) => return None,
            Ok(count) => bytes.extend_from_slice(&page[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// An answer, once all of it is there.
fn parsed(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let (mut length, mut replayed) = (0, false);
    for line in lines {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse::<usize>().ok()?;
        } else if name.eq_ignore_ascii_case(REPLAYED) {
            replayed = true;
        }
    }
    let body = bytes.get(end + 4..end + 4 + length)?;
    Some(Answer { status, replayed, body: String::from_utf8_lossy(body).into_owned() })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const REQUEST: Request<'_> = Request {
        method: "POST",
        path: "/jobs",
        key: Some("k"),
        body: Some("{\"a\":1}"),
        within: Duration::from_secs(5),
    };

    /// What a server that answers so makes of a request, and what it was sent.
    fn asked(answer: &'static str, sending: Sending) -> (Sent, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut got = vec![0; 4_096];
            let mut length = 0;
            while !got[..length].ends_with(b"1}") {
                match stream.read(&mut got[length..]) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => length += count,
                }
            }
            let _ = stream.write_all(answer.as_bytes());
            String::from_utf8_lossy(&got[..length]).into_owned()
        });
        let sent = send(&url, "secret", &REQUEST, sending);
        (sent, server.join().unwrap())
    }

    #[test]
    fn whole_answer_is_read_and_a_broken_one_is_none() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nIdempotent-Replayed: true\r\n\r\n{}";
        let (sent, got) = asked(whole, Sending::Whole);
        assert_eq!(sent, Sent::Answered(Answer { status: 200, replayed: true, body: "{}".to_owned() }));
        assert!(got.contains("idempotency-key: k\r\n") && got.ends_with("{\"a\":1}"), "{got}");
        for broken in ["", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"]
        {
            assert_eq!(asked(broken, Sending::Whole).0, Sent::Unanswered, "{broken}");
        }
    }

    #[test]
    fn cut_request_arrives_whole_and_half_of_one_does_not() {
        let (sent, got) = asked("", Sending::Cut);
        assert!(sent == Sent::Unanswered && got.ends_with("{\"a\":1}"), "{got}");
        let (sent, got) = asked("", Sending::Half);
        assert!(sent == Sent::Never && got.ends_with("{\"a"), "{got}");
    }

    #[test]
    fn where_nobody_listens_nothing_was_sent() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(send(&format!("http://{free}"), "", &REQUEST, Sending::Whole), Sent::Never);
    }
}
