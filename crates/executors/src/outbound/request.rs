//! A request as it goes out and an answer as it came, both small enough to hold.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use url::Url;

use super::OutboundError;

/// Bytes of a URL.
const MAX_URL_BYTES: usize = 8_192;

/// A request.
#[derive(Clone)]
pub struct OutboundRequest {
    /// What is asked.
    pub method: Method,
    /// Of whom.
    pub url: Url,
    /// With what; a later one of the same name replaces an earlier one.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// And what is given; nothing if empty.
    pub body: Vec<u8>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Where it came from, after redirects.
    pub url: Url,
    /// Its headers, names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// Its body, decompressed.
    pub body: Vec<u8>,
}

/// What an answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboundLimits {
    /// From the first look-up to the last byte, redirects included.
    pub deadline: Duration,
    /// Names and values of all headers.
    pub header_bytes: usize,
    /// The body as it comes over the wire, and once more after decompression.
    pub body_bytes: usize,
    /// The redirects that are followed.
    pub redirects: u8,
}

impl Default for OutboundLimits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(5), header_bytes: 16_384, body_bytes: 65_536, redirects: 3 }
    }
}

impl OutboundRequest {
    /// A bare request.
    pub fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: Vec::new(), body: Vec::new() }
    }

    /// Refuses what must not or cannot be sent.
    pub(super) fn check(&self) -> Result<(), OutboundError> {
        let invalid = |what: String| Err(OutboundError::InvalidRequest { what });
        if !matches!(self.url.scheme(), "http" | "https") {
            return invalid(format!("{:?} is not a scheme of HTTP", self.url.scheme()));
        }
        if self.url.host_str().is_none_or(str::is_empty) {
            return invalid("its URL has no host".to_owned());
        }
        if !self.url.username().is_empty() || self.url.password().is_some() {
            return invalid("its URL holds a user name or password: use a header".to_owned());
        }
        if self.url.as_str().len() > MAX_URL_BYTES {
            return invalid(format!("its URL has more than {MAX_URL_BYTES} bytes"));
        }
        Ok(())
    }
}

impl Answer {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The headers as text. Bytes that are no text are replaced: no meaning of ours depends on them.
pub(super) fn headers_of(
    headers: &HeaderMap,
    limits: &OutboundLimits,
) -> Result<Vec<(String, String)>, OutboundError> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > limits.header_bytes {
        return Err(OutboundError::TooLarge { what: "headers", limit: limits.header_bytes });
    }
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect())
}
