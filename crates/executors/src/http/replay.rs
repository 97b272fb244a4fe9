//! Runs a connector against a recorded exchange, without a network: what would be sent is compared, what would come of it is told.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use domain::operation::{Cancelability, Operation, OperationLink};
use domain::policy::Hint;
use domain::{AttemptId, BodyName, JobId, OperationId, Timestamp};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use store::body_ref;
use url::Url;

use super::load::LIMITS;
use super::submit::Work;
use super::{CallbackUrls, Connector, HttpConnector, Secrets, Transport};
use crate::outbound::{Answer, OutboundError, OutboundLimits, OutboundRequest};
use config_file::Mistake;
use engine::{Clock, Intended, Outside, Polled, Produced};

/// The key that a replay gives to the service.
const KEY: &str = "op-replay";
/// Steps of one exchange.
const MAX_STEPS: usize = 1_000;
/// What is told of a body.
const MAX_EXCERPT_CHARS: usize = 500;

/// A recorded exchange.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The job's input.
    #[serde(default)]
    pub input: Value,
    /// Values for the connector's secrets; made up where none is given.
    #[serde(default)]
    pub secrets: BTreeMap<String, String>,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// One thing that the daemon would do, and what goes over the wire meanwhile.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is done.
    pub call: Verb,
    /// The requests that it makes, each with its answer.
    pub exchange: Vec<Pair>,
    /// What comes of it, if that is to be compared.
    #[serde(default)]
    pub then: Option<Value>,
}

/// What the daemon would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Give the work to the service.
    Submit,
    /// The same after a crash around it.
    SubmitAgain,
    /// Ask how it goes.
    Poll,
    /// Ask to stop it.
    Cancel,
}

/// One request and its answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// What is sent; headers that are not named are not compared.
    pub request: RecordedRequest,
    /// What comes back.
    pub answer: RecordedAnswer,
}

/// A request as it was recorded.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the parts of a request")]
pub struct RecordedRequest {
    pub method: String,
    pub url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub body: Option<Value>,
}

/// An answer as it was recorded.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the parts of an answer")]
pub struct RecordedAnswer {
    pub status: u16,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub body: Option<Value>,
}

/// What came of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// Which one, counted from 1.
    pub step: usize,
    /// What would be sent, and what was answered, one line each, secrets masked.
    pub wire: Vec<String>,
    /// What would be recorded.
    pub outcome: Value,
}

/// Where a connector and a recorded exchange differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {step}: {what}")]
pub struct Mismatch {
    /// Which step, counted from 1.
    pub step: usize,
    /// How they differ.
    pub what: String,
}

impl Exchange {
    /// Reads a file; JSON is YAML as well.
    pub fn read(path: &Path) -> Result<Self, Mistake> {
        LIMITS.parse(&path.display().to_string(), &LIMITS.text_of(path)?)
    }

    /// Reads a text; `file` is what mistakes call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, Mistake> {
        LIMITS.parse(file, text)
    }
}

/// Replays an exchange, and tells what came of each step.
pub fn replay(
    connector: Connector,
    exchange: Exchange,
    clock: Arc<dyn Clock>,
) -> BoxFuture<'static, Result<Vec<Replayed>, Mismatch>> {
    Box::pin(replayed(connector, exchange, clock))
}

async fn replayed(
    connector: Connector,
    exchange: Exchange,
    clock: Arc<dyn Clock>,
) -> Result<Vec<Replayed>, Mismatch> {
    let mut secrets = Secrets::default();
    for name in connector.secrets().keys() {
        let value = exchange.secrets.get(name).cloned().unwrap_or_else(|| format!("secret-of-{name}"));
        let wrong = |error: super::SecretError| Mismatch { step: 0, what: error.to_string() };
        secrets.add(name, value).map_err(wrong)?;
    }
    let recording = Arc::new(Recording::default());
    let connector =
        HttpConnector::over(connector, secrets, recording.clone(), clock.clone(), Some(Arc::new(Here)));
    let mut replayed = Vec::new();
    let mut handle = Vec::new();
    for (index, step) in exchange.steps.into_iter().take(MAX_STEPS).enumerate() {
        let differs = |what: String| Mismatch { step: index + 1, what };
        recording.expect(step.exchange);
        let outcome = match step.call {
            Verb::Submit | Verb::SubmitAgain => {
                let again = step.call == Verb::SubmitAgain;
                let intended = Intended { key: OperationId::new(KEY), again };
                let produced = connector.submit_intended(&work(&exchange.input), intended).await;
                let produced = connector.fit_to_keep(produced);
                if let Produced::Deferred(deferral) = &produced {
                    handle.clone_from(&deferral.handle);
                }
                told_of_submit(&produced)
            }
            Verb::Poll => {
                let polled = connector.ask(outside(&handle, clock.now())).await;
                told_of_poll(&polled.map(|polled| connector.fit_to_take(polled)))
            }
            Verb::Cancel => json!(connector.ask_to_stop(outside(&handle, clock.now())).await.answer),
        };
        recording.settled().map_err(|difference| differs(connector.masked(difference)))?;
        if let Some(then) = step.then.filter(|then| *then != outcome) {
            return Err(differs(format!("expected {then}, and it came to {outcome}")));
        }
        // Masked first, then cut: half a secret is not recognised any more.
        let shown = |(line, body): (String, Vec<u8>)| {
            let body = connector.masked(String::from_utf8_lossy(&body));
            let excerpt: String = body.chars().take(MAX_EXCERPT_CHARS).collect();
            format!("{} {excerpt}", connector.masked(line))
        };
        let wire = recording.wire().into_iter().map(shown).collect();
        replayed.push(Replayed { step: index + 1, wire, outcome });
    }
    Ok(replayed)
}

/// The network of a replay: the recorded pairs, in order.
#[derive(Default)]
struct Recording {
    state: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    left: VecDeque<Pair>,
    differences: Vec<String>,
    /// Each line, and the body that belongs to it.
    wire: Vec<(String, Vec<u8>)>,
}

impl Recording {
    fn expect(&self, pairs: Vec<Pair>) {
        *self.lock() = Recorded { left: pairs.into(), ..Recorded::default() };
    }

    /// What went over it since then.
    fn wire(&self) -> Vec<(String, Vec<u8>)> {
        self.lock().wire.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Whether everything that was recorded was asked for, and nothing else.
    fn settled(&self) -> Result<(), String> {
        let Recorded { left, differences, .. } = &*self.lock();
        match (differences.first(), left.front()) {
            (Some(difference), _) => Err(difference.clone()),
            (None, Some(pair)) => {
                Err(format!("{} {} was recorded, and is not sent", pair.request.method, pair.request.url))
            }
            (None, None) => Ok(()),
        }
    }

    fn answer(&self, request: &OutboundRequest) -> Result<Answer, OutboundError> {
        let Recorded { left, differences, wire } = &mut *self.lock();
        let Some(pair) = left.pop_front() else {
            differences.push(format!("{} {} is sent, and was not recorded", request.method, request.url));
            return Err(OutboundError::ConnectFailed { what: "nothing was recorded".to_owned() });
        };
        differences.extend(difference(&pair.request, request));
        let headers = pair.answer.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone()));
        let body = match pair.answer.body {
            None => Vec::new(),
            Some(Value::String(text)) => text.into_bytes(),
            Some(json) => json.to_string().into_bytes(),
        };
        wire.push((format!("sends {} {}", request.method, request.url), request.body.clone()));
        wire.push((format!("is answered {}", pair.answer.status), body.clone()));
        Ok(Answer { status: pair.answer.status, url: request.url.clone(), headers: headers.collect(), body })
    }
}

impl Transport for Recording {
    fn send(
        &self,
        request: OutboundRequest,
        _: OutboundLimits,
    ) -> BoxFuture<'_, Result<Answer, OutboundError>> {
        let answer = self.answer(&request);
        Box::pin(std::future::ready(answer))
    }
}

/// How what is sent differs from what was recorded.
fn difference(recorded: &RecordedRequest, sent: &OutboundRequest) -> Option<String> {
    let same_url = Url::parse(&recorded.url).is_ok_and(|url| url == sent.url);
    if recorded.method != sent.method.as_str() || !same_url {
        return Some(format!(
            "{} {} is sent, and {} {} was recorded",
            sent.method, sent.url, recorded.method, recorded.url
        ));
    }
    for (name, value) in &recorded.headers {
        let mut named = sent.headers.iter().filter(|(known, _)| known.as_str().eq_ignore_ascii_case(name));
        if named.next_back().is_none_or(|(_, sent)| sent.as_bytes() != value.as_bytes()) {
            return Some(format!("the header {name} is not sent as it was recorded"));
        }
    }
    let body = serde_json::from_slice(&sent.body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&sent.body).into_owned()));
    match &recorded.body {
        Some(recorded) if *recorded != body => {
            Some(format!("the body {body} is sent, and {recorded} was recorded"))
        }
        Some(_) | None => None,
    }
}

fn told_of_submit(produced: &Produced) -> Value {
    match produced {
        Produced::Completed(output) => json!({ "completed": data(output) }),
        Produced::Failed(failure) => {
            json!({ "failed": { "code": failure.reason, "message": failure.message, "retryable": retryable(failure) } })
        }
        Produced::SubmitUnknown(failure) => json!({ "submit_unknown": { "code": failure.reason } }),
        Produced::Deferred(deferral) => json!({ "deferred": {
            "retry_after": seconds(deferral.retry_after),
            "cancelable": deferral.cancelability == Cancelability::Cancelable,
        }}),
        Produced::Unavailable(_)
        | Produced::Delivered
        | Produced::AwaitingInput { .. }
        | Produced::Stopped
        | Produced::StoppedWith(_)
        | Produced::Unexpected(_) => json!("unexpected"),
    }
}

fn told_of_poll(polled: &Result<Polled, domain::operation::PollError>) -> Value {
    match polled {
        Err(error) => json!({ "poll_error": { "code": error.code } }),
        Ok(Polled::NotNow { error, retry_after }) => {
            json!({ "poll_error": { "code": error.code, "retry_after": seconds(*retry_after) } })
        }
        Ok(Polled::Open(status, hints)) => {
            let progress: Value = hints
                .progress
                .as_ref()
                .and_then(|json| serde_json::from_str(json.as_str()).ok())
                .unwrap_or_default();
            json!({ "open": {
                "status": status,
                "retry_after": seconds(hints.retry_after),
                "progress": progress,
                "text": hints.progress_hint,
            }})
        }
        Ok(Polled::Completed(output)) => json!({ "completed": data(output) }),
        Ok(Polled::Failed(failure)) => {
            json!({ "failed": { "code": failure.reason, "message": failure.message, "retryable": retryable(failure) } })
        }
        Ok(Polled::TimedOut) => json!("timed-out"),
        Ok(Polled::Cancelled) => json!("cancelled"),
        Ok(Polled::Expired) => json!("expired"),
        Ok(Polled::Unknown) => json!("unknown"),
        Ok(Polled::NobodyToAsk(_)) => json!("unexpected"),
    }
}

fn data(output: &engine::Output) -> Value {
    output.data.as_deref().and_then(|data| serde_json::from_slice(data).ok()).unwrap_or_default()
}

fn retryable(failure: &engine::Failure) -> bool {
    failure.retryable == domain::job::Retryable::Yes
}

fn seconds(hint: Hint) -> Value {
    match hint {
        Hint::Absent => Value::Null,
        Hint::Seconds(seconds) => seconds.into(),
        Hint::Invalid => "invalid".into(),
    }
}

fn work(input: &Value) -> Work {
    let job = json!({
        "id": "work-replay", "attempt_id": "attempt-replay", "attempt_number": 1, "title": "replay", "kind": "general",
        "tags": [], "priority": 0, "session_id": null, "correlation_id": null,
    });
    Work { job, input: input.clone() }
}

/// An operation as the record would have it.
fn outside(handle: &[u8], now: Timestamp) -> Outside {
    let accepted = domain::operation::Accepted {
        link: OperationLink {
            job_id: JobId::new("work-replay"),
            attempt_id: AttemptId::new("attempt-replay"),
            kind: "replay".to_owned(),
            specialist: "replay".to_owned(),
            circle: None,
        },
        handle: Some(body_ref(BodyName::Handle, handle)),
        cancelability: Cancelability::Cancelable,
        policy: domain::policy::KindPolicy::default(),
        interval_seconds: 1,
        progress_hint: None,
        next_poll_at: now,
        expires_at: now,
        invalid_hint: false,
        bounded_by: None,
        asked_retry_after_seconds: None,
        asked_ttl_seconds: None,
        external_job_id: None,
    };
    let operation = Operation::new(OperationId::new(KEY), &accepted, now);
    Outside { operation: Arc::new(operation), handle: handle.to_vec() }
}

struct Here;

impl CallbackUrls for Here {
    fn url_for(&self, operation: &OperationId) -> Option<String> {
        Some(format!("https://longhaul.example/callbacks/{operation}"))
    }
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: {}", self.step, self.outcome)
    }
}
