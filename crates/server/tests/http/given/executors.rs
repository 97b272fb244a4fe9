//! Executors with a known character.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::job::{AttemptLimit, CancelAnswer, Resubmit};
use domain::operation::{Cancelability, PollError, PollHints, ReportedStatus};
use domain::policy::Hint;
use domain::{Digest, Json, Timestamp};
use engine::{
    Approval, Assignment, CancelReply, Contract, Deferral, Failure, ForeignWork, Gated, InputSchema, Intent,
    Link, ModeSupport, Modes, Output, Outside, Polled, Produced, SignedWebhook, Specialist,
};
use executors::{Schema, verify_webhook};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

pub fn all() -> Vec<(&'static str, Arc<dyn Specialist>)> {
    vec![
        ("echo", Arc::new(Echo)),
        ("command", Arc::new(Echo)),
        ("fails", Arc::new(Fails)),
        ("never_taken", Arc::new(NeverTaken)),
        ("hands_over", Arc::new(HandsOver)),
        ("asks", Arc::new(Asks)),
        ("stays", Arc::new(Stays)),
        ("echo_either", Arc::new(Echo)),
        ("stays_either", Arc::new(Stays)),
        ("defers", Arc::new(Defers)),
        ("called", Arc::new(Called)),
        ("signs", Arc::new(Signs)),
        ("defers_only", Arc::new(Defers)),
        ("defers_by_mistake", Arc::new(Defers)),
        ("Shouts", Arc::new(Echo)),
        ("press", Arc::new(Echo)),
        ("asks_operators", Arc::new(Gated::new(Arc::new(Echo)))),
        ("render.cover", Arc::new(Defers)),
        ("boasts", Arc::new(Defers)),
        ("modest", Arc::new(Defers)),
        ("submits", Arc::new(Submits { brake: Brake::Fitted })),
        ("brakeless", Arc::new(Submits { brake: Brake::Missing })),
        ("brakeless_without_a_reason", Arc::new(Submits { brake: Brake::MissingWithoutReason })),
        ("slow", Arc::new(Slow { command: None })),
        ("slow_plugin", Arc::new(Slow { command: Some("handle") })),
        ("says_timeout", Arc::new(SaysTimeout)),
    ]
}

/// How each may be invoked.
pub fn modes(name: &str) -> Modes {
    let support = match name {
        "never_taken"
        | "echo_either"
        | "stays_either"
        | "defers"
        | "press"
        | "submits"
        | "brakeless"
        | "brakeless_without_a_reason" => ModeSupport::Either,
        "defers_only" | "Shouts" | "render.cover" | "asks_operators" => ModeSupport::AsyncOnly,
        _ => ModeSupport::default(),
    };
    let wishes = |retry_after: i64, max_ttl: i64| Modes {
        support: ModeSupport::Either,
        retry_after: Hint::Seconds(retry_after),
        max_ttl: Hint::Seconds(max_ttl),
    };
    match name {
        "boasts" => wishes(99_999, 99_999),
        "modest" => wishes(15, 60),
        _ => Modes { support, ..Modes::default() },
    }
}

/// What one of them promises: those with a schema are actions.
pub fn contract(name: &str) -> Contract {
    let schema = match name {
        "echo" | "press" => json!({ "properties": { "pages": { "type": "integer" } } }),
        "fails" | "stays" | "defers" | "render.cover" => json!({}),
        "asks_operators" => return Contract { approval: Approval::Operator, ..Contract::default() },
        _ => return Contract::default(),
    };
    let parameters: Arc<dyn InputSchema> = Arc::new(Schema::read(&schema).expect("it is a schema"));
    Contract {
        description: Some(format!("the action {name}")),
        parameters: Some(parameters),
        ..Contract::default()
    }
}

type Outcome<'a> = Pin<Box<dyn Future<Output = Produced> + Send + 'a>>;

/// Gives its input back.
struct Echo;

impl Specialist for Echo {
    fn produce(&self, assignment: Assignment, _: Link) -> Outcome<'_> {
        let output =
            Output { summary: Some("echoed".to_owned()), data: Some(assignment.input), ..Output::default() };
        Box::pin(async move { Produced::Completed(output) })
    }
}

/// Offers the work to a service that has no time.
struct NeverTaken;

impl Specialist for NeverTaken {
    fn produce(&self, _: Assignment, _: Link) -> Outcome<'_> {
        Box::pin(async { Produced::Failed(Failure::transient("service_busy", "come back later")) })
    }

    fn traits(&self) -> engine::ExecutorTraits {
        engine::ExecutorTraits { begins_outside: true, ..engine::ExecutorTraits::default() }
    }
}

/// Fails for good.
struct Fails;

impl Specialist for Fails {
    fn produce(&self, _: Assignment, _: Link) -> Outcome<'_> {
        Box::pin(async { Produced::Failed(Failure::permanent("out_of_paper", "there is no paper")) })
    }
}

/// Takes longer than it may: two seconds, for all its jobs or for those of one command.
struct Slow {
    command: Option<&'static str>,
}

impl Specialist for Slow {
    fn produce(&self, _: Assignment, _: Link) -> Outcome<'_> {
        let command = self.command.map(str::to_owned);
        let limit = AttemptLimit::Executor { seconds: 2, command };
        let failure = Failure::permanent("timed_out", "it was too slow").limited_by(limit);
        Box::pin(async move { Produced::Failed(failure) })
    }
}

/// Fails with a code that only sounds like a limit of ours.
struct SaysTimeout;

impl Specialist for SaysTimeout {
    fn produce(&self, _: Assignment, _: Link) -> Outcome<'_> {
        Box::pin(async { Produced::Failed(Failure::permanent("timeout", "the press has timed out")) })
    }
}

/// Hands the work to somebody who will report.
struct HandsOver;

impl Specialist for HandsOver {
    fn produce(&self, _: Assignment, _: Link) -> Outcome<'_> {
        Box::pin(async { Produced::Delivered })
    }
}

/// Asks first, then gives the answer back.
struct Asks;

impl Specialist for Asks {
    fn produce(&self, assignment: Assignment, _: Link) -> Outcome<'_> {
        Box::pin(async move {
            match assignment.answers.into_iter().next_back() {
                None => Produced::AwaitingInput { question: b"\"may I?\"".to_vec() },
                Some(answer) => Produced::Completed(Output { data: Some(answer), ..Output::default() }),
            }
        })
    }
}

/// Works until it is told to stop, and says when it begins.
struct Stays;

/// Works that have begun.
pub static BEGUN: Semaphore = Semaphore::const_new(0);

impl Specialist for Stays {
    fn produce(&self, _: Assignment, mut link: Link) -> Outcome<'_> {
        Box::pin(async move {
            BEGUN.add_permits(1);
            link.stopped().await;
            Produced::Stopped
        })
    }
}

/// Leaves the work outside. Its input says what happens there: after so many `polls` it is over as `ends` says (completed if left
/// out, never if it is not one of ours), `pending` of them find it not begun and `lost` of them unknown; `cancel` is what the service answers: cancelled, refused, `refused_to_the_host`, or there is none.
struct Defers;

impl Specialist for Defers {
    fn produce(&self, assignment: Assignment, _: Link) -> Outcome<'_> {
        let mut deferral = Deferral::new(assignment.input);
        let script: Value = serde_json::from_slice(&deferral.handle).unwrap_or_default();
        deferral.external_job_id = script["external_id"].as_str().map(str::to_owned);
        deferral.fail_after = script["fail_after"].as_i64().map_or(Hint::Absent, Hint::Seconds);
        if script["cancel"].is_null() {
            deferral.cancelability = Cancelability::NotCancelable("the press has no brake".to_owned());
        }
        Box::pin(std::future::ready(Produced::Deferred(deferral)))
    }

    fn adopt(&self, _: &Assignment, work: ForeignWork) -> Result<Deferral, String> {
        Ok(Deferral::new(json!({ "polls": 9, "id": work.id }).to_string().into_bytes()))
    }

    fn poll(&self, outside: Outside) -> Pin<Box<dyn Future<Output = Result<Polled, PollError>> + Send + '_>> {
        let script: Value = serde_json::from_slice(&outside.handle).unwrap_or_default();
        let over = u64::from(outside.operation.polls) >= script["polls"].as_u64().unwrap_or(0);
        let result =
            || Output { data: Some(json!({ "pages": 12 }).to_string().into_bytes()), ..Output::default() };
        let is_within = |name: &str| u64::from(outside.operation.polls) < script[name].as_u64().unwrap_or(0);
        let answer = match (over, script["ends"].as_str()) {
            _ if is_within("lost") => Polled::Unknown,
            _ if is_within("pending") => Polled::Open(ReportedStatus::Pending, hints(&script, &outside)),
            (true, None | Some("completed")) => Polled::Completed(result()),
            (true, Some("failed")) => Polled::Failed(Failure::permanent("out_of_ink", "there is no ink")),
            (true, Some("timed_out")) => Polled::TimedOut,
            (true, Some("expired")) => Polled::Expired,
            (true, Some("unknown")) => Polled::Unknown,
            (true, Some(_)) | (false, _) => Polled::Open(ReportedStatus::Running, hints(&script, &outside)),
        };
        let error = script["error"].as_str().map(|message| PollError {
            code: "press_asleep".to_owned(),
            message: message.to_owned(),
            ..PollError::default()
        });
        Box::pin(std::future::ready(error.map_or(Ok(answer), Err)))
    }

    fn cancel(&self, outside: Outside) -> Pin<Box<dyn Future<Output = CancelReply> + Send + '_>> {
        let script: Value = serde_json::from_slice(&outside.handle).unwrap_or_default();
        let by_the_host = outside.operation.cancel.as_ref().is_some_and(|cancel| cancel.by.is_none());
        let answer = match script["cancel"].as_str() {
            Some("refused_to_the_host") if by_the_host => {
                CancelAnswer::Refused("the private reason".to_owned())
            }
            Some("refused") => CancelAnswer::Refused("the private reason".to_owned()),
            Some(_) | None => CancelAnswer::Cancelled,
        };
        Box::pin(async move { answer.into() })
    }
}

/// What the service says beside its state: with `hint` the number of the question, and `progress`.
fn hints(script: &Value, outside: &Outside) -> PollHints {
    let page = outside.operation.polls + 1;
    PollHints {
        progress_hint: (script["hint"] == true).then(|| format!("page {page}")),
        progress: script.get("progress").and_then(|progress| Json::parse(&progress.to_string()).ok()),
        ..PollHints::default()
    }
}

/// Whether a press can be stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Brake {
    Fitted,
    Missing,
    MissingWithoutReason,
}

/// Gives the work to a service under an intent. With `slowly` in its input the service takes it once the test says so.
struct Submits {
    brake: Brake,
}

/// What the test lets services take.
pub static TAKEN: Semaphore = Semaphore::const_new(0);
/// A request is on its way to a service.
pub static UNDER_WAY: Semaphore = Semaphore::const_new(0);

impl Specialist for Submits {
    fn produce(&self, assignment: Assignment, link: Link) -> Outcome<'_> {
        Box::pin(async move {
            let script: Value = serde_json::from_slice(&assignment.input).unwrap_or_default();
            let intent = Intent { request_sha256: Digest([3; 32]), resubmit: Resubmit::SameKey };
            if link.intend(intent).await.is_err() {
                return Produced::Stopped;
            }
            if script["slowly"] == true {
                UNDER_WAY.add_permits(1);
                TAKEN.acquire().await.expect("it is never closed").forget();
            }
            let mut deferral = Deferral::new(assignment.input);
            deferral.cancelability = match self.not_cancelable_because() {
                Some(why) => Cancelability::NotCancelable(why),
                None => Cancelability::Cancelable,
            };
            Produced::Deferred(deferral)
        })
    }

    fn poll(&self, outside: Outside) -> Pin<Box<dyn Future<Output = Result<Polled, PollError>> + Send + '_>> {
        Defers.poll(outside)
    }

    fn cancel(&self, outside: Outside) -> Pin<Box<dyn Future<Output = CancelReply> + Send + '_>> {
        Defers.cancel(outside)
    }

    fn not_cancelable_because(&self) -> Option<String> {
        match self.brake {
            Brake::Fitted => None,
            Brake::Missing => Some("the press has no brake".to_owned()),
            Brake::MissingWithoutReason => Some(String::new()),
        }
    }
}

/// Like the one that defers, but its service signs what it sends.
struct Signs;

impl Specialist for Signs {
    fn produce(&self, assignment: Assignment, link: Link) -> Outcome<'_> {
        Defers.produce(assignment, link)
    }

    fn poll(&self, outside: Outside) -> Pin<Box<dyn Future<Output = Result<Polled, PollError>> + Send + '_>> {
        Defers.poll(outside)
    }

    fn admits_callback(&self, callback: SignedWebhook<'_>, now: Timestamp) -> bool {
        let secret = format!("whsec_{}", STANDARD.encode(super::WEBHOOK_KEY));
        verify_webhook(&secret, callback, now)
    }
}

/// Leaves the work outside, where nothing is ever known of it but by callback: its body is the result, unless it says that it is too late.
struct Called;

impl Specialist for Called {
    fn produce(&self, assignment: Assignment, link: Link) -> Outcome<'_> {
        drop(link);
        Box::pin(async move { Produced::Deferred(Deferral::new(assignment.input)) })
    }

    fn poll(&self, _: Outside) -> Pin<Box<dyn Future<Output = Result<Polled, PollError>> + Send + '_>> {
        Box::pin(async { Ok(Polled::Open(ReportedStatus::Pending, PollHints::default())) })
    }

    fn read_callback(&self, body: &[u8]) -> Option<Polled> {
        let said: Value = serde_json::from_slice(body).unwrap_or_default();
        let output = Output { data: Some(body.to_vec()), ..Output::default() };
        Some(if said["late"] == true { Polled::TimedOut } else { Polled::Completed(output) })
    }
}
