//! Reading one request from a connection.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_BODY_BYTES: usize = 8 << 20;
const MAX_HEADERS: usize = 100;
const READ_BYTES: usize = 16 * 1024;

/// One request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: String,
    /// Without the query, percent-decoded.
    pub path: String,
    /// Names and values, percent-decoded.
    pub query: Vec<(String, String)>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// As it came.
    pub body: Vec<u8>,
}

/// What is wrong with a request; the status says the rest.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// The client is gone, or was never there.
    Gone,
    /// Answer this and close.
    Refused(u16),
}

impl From<std::io::Error> for Unreadable {
    fn from(_: std::io::Error) -> Self {
        Self::Gone
    }
}

impl Request {
    /// The first header of that name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first value of that name in the query.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The parts of the path between slashes.
    pub fn segments(&self) -> Vec<&str> {
        self.path.split('/').filter(|segment| !segment.is_empty()).collect()
    }

    pub(super) fn wants_close(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// The next request; `buffer` keeps what came after it.
pub(super) async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Request, Unreadable> {
    let (mut request, head_bytes) = loop {
        if let Some(parsed) = parse_head(buffer)? {
            break parsed;
        }
        if buffer.len() > MAX_HEAD_BYTES {
            return Err(Unreadable::Refused(431));
        }
        fill(stream, buffer).await?;
    };
    buffer.drain(..head_bytes);
    if request.header("transfer-encoding").is_some() {
        return Err(Unreadable::Refused(411));
    }
    let length = match request.header("content-length") {
        None => 0,
        Some(text) => text.parse::<usize>().map_err(|_| Unreadable::Refused(400))?,
    };
    if length > MAX_BODY_BYTES {
        return Err(Unreadable::Refused(413));
    }
    if request.header("expect").is_some() && buffer.len() < length {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    while buffer.len() < length {
        fill(stream, buffer).await?;
    }
    request.body = buffer.drain(..length).collect();
    Ok(request)
}

async fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<(), Unreadable> {
    buffer.reserve(READ_BYTES);
    match stream.read_buf(buffer).await? {
        0 => Err(Unreadable::Gone),
        _ => Ok(()),
    }
}

fn parse_head(buffer: &[u8]) -> Result<Option<(Request, usize)>, Unreadable> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(buffer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Unreadable::Refused(400)),
    };
    let target = head.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: decoded(path, false),
        query: query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(name, value)| (decoded(name, true), decoded(value, true)))
            .collect(),
        headers: head
            .headers
            .iter()
            .map(|header| {
                (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
            })
            .collect(),
        body: Vec::new(),
    };
    Ok(Some((request, length)))
}

/// Undoes percent-encoding; what is no encoding stays as it is.
fn decoded(text: &str, plus_is_space: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 2;
            }
            (b'+', _) if plus_is_space => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_undone_and_broken_encoding_stays() {
        assert_eq!(decoded("deferred%3Aa.b%3Ax", false), "deferred:a.b:x");
        assert_eq!(decoded("a+b%2", true), "a b%2");
        assert_eq!(decoded("a+b%zz", false), "a+b%zz");
    }

    #[test]
    fn head_that_is_not_whole_is_read_on_and_a_broken_one_refused() {
        assert!(parse_head(b"GET /work HTTP/1.1\r\nHost: a").unwrap().is_none());
        assert!(matches!(parse_head(b"\0\0\0 nonsense\r\n\r\n"), Err(Unreadable::Refused(400))));
        let (request, length) =
            parse_head(b"GET /work/a?key=k%20k HTTP/1.1\r\nHost: a\r\n\r\nrest").unwrap().unwrap();
        assert_eq!((request.segments(), request.query_value("key")), (vec!["work", "a"], Some("k k")));
        assert_eq!(length, 43);
    }
}
