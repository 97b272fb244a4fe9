//! An endpoint that takes webhooks in, as its operator sets it up.

use domain::event::MAX_TYPE_BYTES;
use hyper::http::HeaderName;

/// The longest name or path.
const MAX_NAME_BYTES: usize = 64;

/// Where webhooks come in, and how they are signed.
pub struct Endpoint {
    /// What it is called: in events, in the ledger.
    pub name: String,
    /// Where it is, under `/hooks/`.
    pub path: String,
    /// The type of its events.
    pub event: String,
    /// What its messages are signed with.
    pub key: Vec<u8>,
    /// The header that has the signature: hex, or `sha256=` and hex.
    pub signature_header: String,
    /// The time that is signed with the body, if one is.
    pub time: Option<SignedTime>,
    /// The largest body that it takes.
    pub max_body_bytes: usize,
    /// The header that says which messages are the same.
    pub dedupe_header: Option<String>,
    /// Whose events they are.
    pub circle: Option<String>,
}

/// The time of a message: what is signed is `<time>.<body>`.
#[derive(Clone, Debug)]
pub struct SignedTime {
    /// The header that has it, as seconds since 1970.
    pub header: String,
    /// How far it may be from ours.
    pub max_age_seconds: u64,
}

impl Endpoint {
    /// The largest body that an endpoint may take, and takes if nothing is said.
    pub const MAX_BODY_BYTES: usize = 1_048_576;
    /// How far the time of a message may be from ours if nothing is said.
    pub const DEFAULT_MAX_AGE_SECONDS: u64 = 300;

    /// Why it cannot be used.
    pub fn check(&self) -> Result<(), String> {
        for (what, word) in [("name", &self.name), ("path", &self.path)] {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if word.is_empty() || word.len() > MAX_NAME_BYTES || !word.chars().all(is_plain) {
                return Err(format!(
                    "the {what} {word:?} of a webhook has 1 to {MAX_NAME_BYTES} letters, digits, `-`, `_` and `.`"
                ));
            }
        }
        if self.event.is_empty()
            || self.event.len() > MAX_TYPE_BYTES
            || self.event.chars().any(char::is_control)
        {
            return Err(format!("the event of {:?} has 1 to {MAX_TYPE_BYTES} bytes", self.name));
        }
        let time = self.time.as_ref().map(|time| &time.header);
        let headers = [Some(&self.signature_header), time, self.dedupe_header.as_ref()];
        for header in headers.into_iter().flatten() {
            if HeaderName::from_bytes(header.as_bytes()).is_err() {
                return Err(format!("{header:?} of {:?} is no name of a header", self.name));
            }
        }
        if self.max_body_bytes > Self::MAX_BODY_BYTES {
            return Err(format!("{:?} takes at most {} bytes", self.name, Self::MAX_BODY_BYTES));
        }
        Ok(())
    }
}
