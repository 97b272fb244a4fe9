//! The HTTP client of the command line: blocking, small, with a time limit on everything.
//!
//! No redirect is followed and no proxy used, so that the token goes nowhere but to the daemon that was named.

mod connection;
mod follow;
mod output;
mod result;
mod stream;

use std::fmt::Write as _;
use std::time::Duration;

use api::{JobStatus, Problem, ProblemCode, StatusAnswer};
use serde::de::DeserializeOwned;
use ureq::http::{Request, Response};
use ureq::{Agent, Body};

pub use connection::{AtDaemon, Connection, DATA_DIR, DaemonFile};
pub use follow::{ENDS, follow};
pub use output::{Attempt, Sink, follow_output};
pub use result::Stream;

use crate::exit::Failed;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A run answers after ten seconds at the latest, and the store may be slow.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// A page of a thousand jobs with their prompts.
const MAX_ANSWER_BYTES: u64 = 64 * 1_048_576;

/// The HTTP status of a daemon that has too much to do.
const BUSY: u16 = 503;

/// One daemon, and who asks.
pub struct Client {
    agent: Agent,
    url: String,
    token: Option<String>,
    /// What to say when nobody answers.
    hint: String,
}

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody answers.
    #[error("cannot connect to the daemon at {url}: {why}; {hint}")]
    Unreachable { url: String, why: String, hint: String },
    /// There is no such thing, or not for this token.
    #[error("{}", .0.detail)]
    NotFound(Box<Problem>),
    /// The daemon said no.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    /// Whoever answered is no daemon of ours.
    #[error("{0}")]
    Unintelligible(String),
}

/// How routes that are there for clients of Ductile refuse.
#[derive(serde::Deserialize)]
struct InWordsOfDuctile {
    error: String,
}

impl CallError {
    /// Whether the same call may succeed soon: nobody answers, or the daemon has too much to do.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(problem) => problem.status == BUSY,
            Self::NotFound(_) | Self::Unintelligible(_) => false,
        }
    }
}

/// What is sent.
pub struct Call<'a> {
    pub method: &'static str,
    pub path: &'a str,
    pub body: Option<String>,
    pub idempotency_key: Option<&'a str>,
}

impl<'a> Call<'a> {
    /// Without a body.
    pub fn bare(method: &'static str, path: &'a str) -> Self {
        Self { method, path, body: None, idempotency_key: None }
    }

    pub fn get(path: &'a str) -> Self {
        Self::bare("GET", path)
    }

    pub fn post(path: &'a str, body: &impl serde::Serialize) -> Self {
        let body = serde_json::to_string(body).expect("what we send is plain JSON");
        Self { body: Some(body), ..Self::bare("POST", path) }
    }
}

/// The path of a job and what belongs to it.
pub fn job_path(id: &str, rest: &str) -> String {
    format!("/jobs/{}{rest}", segment(id))
}

/// The parts of a query that were given.
pub fn query(parts: &[(&str, &Option<String>)]) -> String {
    let given = parts.iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    given.map(|(name, value)| format!("{name}={}", segment(value))).collect::<Vec<_>>().join("&")
}

/// A text as one segment of a path, or one value of a query.
pub fn segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => segment.push(byte.into()),
            other => {
                let _ = write!(segment, "%{other:02X}");
            }
        }
    }
    segment
}

impl Client {
    fn new(url: String, token: Option<String>, hint: String) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(CONNECT_WITHIN))
            .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { agent: config.into(), url, token, hint }
    }

    /// Calls and reads the answer. What fails is told with what was to be done, in a few words.
    pub fn ask<T: DeserializeOwned>(&self, what: &str, call: Call<'_>) -> Result<T, Failed> {
        self.call(call).map_err(|error| Failed::to(what, error))
    }

    /// The same about one job, or about none in particular.
    pub fn ask_of_job<T: DeserializeOwned>(&self, verb: &str, id: &str, call: Call<'_>) -> Result<T, Failed> {
        self.call(call).map_err(|error| Failed::job(verb, id, error))
    }

    /// Where a job is.
    pub fn status(&self, id: &str) -> Result<JobStatus<'static>, CallError> {
        Ok(self.call::<StatusAnswer<'static>>(Call::get(&job_path(id, "")))?.status)
    }

    /// Calls and reads the answer.
    pub fn call<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, CallError> {
        let text = self.text(call)?;
        serde_json::from_str(&text)
            .map_err(|error| CallError::Unintelligible(format!("the answer cannot be read: {error}")))
    }

    /// Calls and gives the answer as it stands.
    pub fn text(&self, call: Call<'_>) -> Result<String, CallError> {
        let response = self.send(&call)?;
        self.read(response)
    }

    fn send(&self, call: &Call<'_>) -> Result<Response<Body>, CallError> {
        let request = self.agent.configure_request(self.request(call)?);
        let request = request.timeout_global(Some(ANSWER_WITHIN)).build();
        self.agent.run(request).map_err(|error| self.unreachable(&error))
    }

    fn request(&self, call: &Call<'_>) -> Result<Request<String>, CallError> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(format!("{}{}", self.url, call.path))
            .header("accept", "application/json, application/problem+json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(key) = call.idempotency_key {
            request = request.header(api::IDEMPOTENCY_KEY, key);
        }
        if call.body.is_some() {
            request = request.header("content-type", "application/json");
        }
        request
            .body(call.body.clone().unwrap_or_default())
            .map_err(|error| CallError::Unintelligible(format!("{} cannot be asked: {error}", self.url)))
    }

    fn read(&self, mut response: Response<Body>) -> Result<String, CallError> {
        let status = response.status();
        let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_string();
        let text = body.map_err(|error| self.unreachable(&error))?;
        if status.is_success() {
            return Ok(text);
        }
        let of_ductile = |told: InWordsOfDuctile| ProblemCode::NotFound.because(told.error);
        let read = serde_json::from_str::<Problem>(&text).ok().or_else(|| {
            let told =
                serde_json::from_str(&text).ok().filter(|_| status == ureq::http::StatusCode::NOT_FOUND);
            told.map(of_ductile)
        });
        let Some(problem) = read else {
            let told = format!("{} answered {status}, which is no answer of a longhaul daemon", self.url);
            return Err(CallError::Unintelligible(told));
        };
        if problem.code == ProblemCode::NotFound.as_str() {
            return Err(CallError::NotFound(Box::new(problem)));
        }
        Err(CallError::Refused(Box::new(problem)))
    }

    fn unreachable(&self, error: &ureq::Error) -> CallError {
        CallError::Unreachable { url: self.url.clone(), why: error.to_string(), hint: self.hint.clone() }
    }
}
