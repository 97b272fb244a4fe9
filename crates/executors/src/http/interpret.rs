//! What an answer means. Pure: an answer, what the file says about it, and the time; no guess where the file says nothing.

use domain::job::{CancelAnswer, Retryable};
use domain::limits::{MAX_NOTE_BYTES, MAX_PROGRESS_BYTES, MAX_SUMMARY_BYTES};
use domain::operation::{PollError, PollHints, ReportedStatus};
use domain::policy::Hint;
use domain::{Json, Timestamp};
use jsone::Template;
use serde_json::{Map, Value, json};

use super::call::{Call, plain_text};
use super::file::State;
use super::hints;
use super::template;
use crate::outbound::Answer;
use engine::is_code_character;
use engine::{Failure, FailureCause, Output};

/// The longest text that a service gives as the code of an error.
const MAX_CODE_BYTES: usize = 64;
/// What is shown of an answer that was not understood.
const MAX_EXCERPT_BYTES: usize = 500;

/// An answer in the form that expressions read.
pub(super) struct Reading<'a> {
    pub(super) answer: &'a Answer,
    context: Value,
    call: &'a Call,
    now: Timestamp,
}

/// What the status of an answer to `submit` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Submission {
    /// The service took the work, or has done it already.
    Accepted,
    /// It did not, and will not.
    Refused,
    /// It did not, but may later.
    NotNow,
    /// It may have.
    Unclear,
}

/// What the status of an answer to `status` or `lookup` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It can be read.
    Answered,
    /// The service does not know the work.
    Gone,
    /// The question failed; that says nothing about the work.
    NotAnswered(&'static str),
}

/// 429 and 503 never mean accepted; what went wrong inside the service may have gone wrong after it took the work.
pub(super) fn submission(call: &Call, status: u16) -> Submission {
    match status {
        _ if call.accepts(status) => Submission::Accepted,
        408 | 425 | 429 | 503 => Submission::NotNow,
        400..=499 => Submission::Refused,
        _ => Submission::Unclear,
    }
}

pub(super) fn asked(call: &Call, status: u16) -> Asked {
    match status {
        _ if call.accepts(status) => Asked::Answered,
        _ if call.gone.contains(&status) => Asked::Gone,
        429 | 503 => Asked::NotAnswered("service_busy"),
        401 | 403 => Asked::NotAnswered("service_refused"),
        500..=599 => Asked::NotAnswered("service_error"),
        _ => Asked::NotAnswered("status-payload-invalid"),
    }
}

impl<'a> Reading<'a> {
    pub(super) fn new(answer: &'a Answer, call: &'a Call, now: Timestamp) -> Self {
        let mut headers = Map::new();
        for (name, value) in &answer.headers {
            match headers.get_mut(name) {
                Some(Value::String(earlier)) => *earlier = format!("{earlier}, {value}"),
                Some(_) | None => {
                    headers.insert(name.clone(), value.clone().into());
                }
            }
        }
        let context = json!({ "answer": {
            "status": answer.status,
            "headers": headers,
            "location": location(answer),
            "body": parsed(&answer.body),
        }});
        Self { answer, context, call, now }
    }

    /// The state that the service names, in our words.
    pub(super) fn state(
        &self,
        states: &std::collections::BTreeMap<String, State>,
    ) -> Result<State, PollError> {
        let status = self.call.read.status.as_ref();
        let Some(value) = self.find(status) else {
            let why = status.map(|template| template::render(template, &self.context, self.now));
            let why = why.and_then(Result::err).map_or_else(String::new, |why| format!(": {why}"));
            return Err(invalid(&format!("the answer names no state{why}")));
        };
        let Some(word) = plain_text(&value) else { return Err(invalid("the state is no word")) };
        states.get(&word).copied().ok_or_else(|| {
            invalid(&format!("the state {word:?} is not in the connector's states: add what it means"))
        })
    }

    /// Whether the file says where the state is in this answer.
    pub(super) fn names_state(&self) -> bool {
        self.call.read.status.is_some()
    }

    /// Whether the file says where the result is in this answer.
    pub(super) fn holds_result(&self) -> bool {
        self.call.read.result.is_some()
    }

    /// The service's own id.
    pub(super) fn id(&self) -> Option<Value> {
        self.id_at(self.call.read.id.as_ref())
    }

    /// The id of other work that a status answer names, if it names one. The file says where the id is in this answer; else it is
    /// looked for where `submit` found it. An address is compared only where the file says so: it may point to what comes next.
    pub(super) fn names_other_work(&self, ours: &Value, submit: &Call) -> Option<String> {
        let ours = plain_text(ours).filter(|ours| !ours.is_empty())?;
        let named = match &self.call.read.id {
            Some(_) => self.id(),
            None if ours.contains("://") => None,
            None => self.id_at(submit.read.id.as_ref()),
        };
        plain_text(&named?).filter(|named| *named != ours)
    }

    fn id_at(&self, template: Option<&Template>) -> Option<Value> {
        let id = self.find(template)?;
        let is_id = id.is_number() || id.as_str().is_some_and(|text| !text.is_empty());
        is_id.then_some(id)
    }

    pub(super) fn location(&self) -> Option<String> {
        location(self.answer)
    }

    /// When to ask next: what the file points to, else the header.
    pub(super) fn retry_after(&self) -> Hint {
        match self.find(self.call.read.retry_after.as_ref()) {
            Some(value) => hints::of_value(&value, self.now),
            None => {
                let header = self.answer.header("retry-after");
                header.map_or(Hint::Absent, |header| hints::of_text(header, self.now))
            }
        }
    }

    pub(super) fn fail_after(&self) -> Hint {
        let found = self.find(self.call.read.fail_after.as_ref());
        found.map_or(Hint::Absent, |value| hints::of_value(&value, self.now))
    }

    pub(super) fn progress_text(&self) -> Option<String> {
        self.text(self.call.read.progress_text.as_ref()).map(|text| shortened(text, MAX_NOTE_BYTES))
    }

    /// Why the service says that this work cannot be stopped.
    pub(super) fn not_cancelable_because(&self) -> Option<String> {
        let told = self.text(self.call.read.not_cancelable_because.as_ref());
        told.filter(|told| !told.is_empty()).map(|told| shortened(told, MAX_NOTE_BYTES))
    }

    /// What comes with "not over". Progress that the record would not take is left out: it is a courtesy.
    pub(super) fn hints(&self) -> PollHints {
        let progress = match self.find(self.call.read.progress.as_ref()) {
            Some(number @ Value::Number(_)) => Some(json!({ "percent": number })),
            Some(object @ Value::Object(_)) => Some(object),
            Some(_) | None => None,
        };
        let progress = progress.map(|progress| progress.to_string());
        PollHints {
            retry_after: self.retry_after(),
            fail_after: self.fail_after(),
            progress_hint: self.progress_text(),
            progress: progress
                .filter(|text| text.len() <= MAX_PROGRESS_BYTES)
                .and_then(|text| Json::parse(&text).ok()),
        }
    }

    /// The result; the whole body unless the file says where it is.
    pub(super) fn output(&self) -> Result<Output, Failure> {
        let data = match &self.call.read.result {
            Some(template) => match self.find(Some(template)) {
                Some(value) => value.to_string(),
                None => return Err(contract("there is no result where the connector looks for it")),
            },
            None => match std::str::from_utf8(&self.answer.body) {
                Ok("") => "null".to_owned(),
                Ok(text) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => text.to_owned(),
                Ok(text) => Value::String(text.to_owned()).to_string(),
                Err(_) => return Err(contract("it is neither JSON nor text")),
            },
        };
        let data = Json::parse(&data).map_err(|refusal| contract(&refusal.to_string()))?;
        let artifacts = self.find(self.call.read.artifacts.as_ref()).filter(Value::is_array);
        let summary = self.text(self.call.read.summary.as_ref());
        Ok(Output {
            summary: summary.map(|text| shortened(text, MAX_SUMMARY_BYTES)),
            data: Some(data.as_str().as_bytes().to_vec()),
            artifacts: artifacts.map(|list| list.to_string().into_bytes()),
            ..Output::default()
        })
    }

    /// Why the service says that the work failed.
    pub(super) fn failure(&self, usual: &'static str) -> Failure {
        let code = self.text(self.call.read.error_code.as_ref());
        let code = code.filter(|code| is_code(code));
        let retryable = match self.find(self.call.read.retryable.as_ref()) {
            Some(Value::Bool(true)) => Retryable::Yes,
            Some(_) | None => Retryable::No,
        };
        let cause = code.is_some().then(|| Box::new(FailureCause::Service { usual_reason: usual }));
        let reason = code.unwrap_or_else(|| usual.to_owned());
        Failure { retryable, cause, ..Failure::permanent(&reason, self.complaint()) }
    }

    /// What the service said, for people.
    pub(super) fn complaint(&self) -> String {
        let said = match self.find(self.call.read.error.as_ref()) {
            Some(Value::String(text)) => text,
            Some(value) => value.to_string(),
            None => {
                let body = String::from_utf8_lossy(&self.answer.body).into_owned();
                format!("the service answered {}: {}", self.answer.status, shortened(body, MAX_EXCERPT_BYTES))
            }
        };
        shortened(said, MAX_NOTE_BYTES)
    }

    /// What an answer to `cancel` means.
    pub(super) fn cancelled(
        &self,
        confirmed: &[u16],
        states: &std::collections::BTreeMap<String, State>,
    ) -> CancelAnswer {
        let status = self.answer.status;
        if confirmed.contains(&status) {
            return CancelAnswer::Cancelled;
        }
        if self.call.accepts(status) {
            return match self.state(states) {
                Ok(State::Cancelled) => CancelAnswer::Cancelled,
                Ok(_) | Err(_) => CancelAnswer::Accepted,
            };
        }
        match status {
            408 | 425 | 429 | 500 | 502..=599 => CancelAnswer::Unreachable,
            _ => CancelAnswer::Refused(shortened(self.complaint(), MAX_NOTE_BYTES)),
        }
    }

    /// What a template for the handle finds; null if nothing.
    pub(super) fn value(&self, template: &Template) -> Value {
        self.find(Some(template)).unwrap_or_default()
    }

    fn text(&self, template: Option<&Template>) -> Option<String> {
        plain_text(&self.find(template)?)
    }

    /// An expression that cannot be evaluated on this answer finds nothing in it.
    fn find(&self, template: Option<&Template>) -> Option<Value> {
        template::find(template?, &self.context, self.now)
    }
}

/// A poll whose answer nobody understands.
pub(super) fn invalid(message: &str) -> PollError {
    PollError {
        code: "status-payload-invalid".to_owned(),
        message: shortened(message.to_owned(), MAX_NOTE_BYTES),
        ..PollError::default()
    }
}

/// What an open state is to the record; nothing if it is an end.
pub(super) fn open(state: State) -> Option<ReportedStatus> {
    match state {
        State::Pending => Some(ReportedStatus::Pending),
        State::Running => Some(ReportedStatus::Running),
        State::Completed
        | State::Failed
        | State::TimedOut
        | State::Cancelled
        | State::Expired
        | State::Unknown => None,
    }
}

fn contract(why: &str) -> Failure {
    Failure::permanent("result-contract-error", format!("the result cannot be kept: {why}"))
}

/// The `Location` of an answer, made whole.
fn location(answer: &Answer) -> Option<String> {
    let location = answer.header("location")?;
    answer.url.join(location).ok().map(String::from)
}

/// Whether a text can be a code. It stands in facts, lists and logs, where no sentence of a service shall stand. Whoever has the
/// job's input compares the code with it.
fn is_code(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_CODE_BYTES && text.chars().all(is_code_character)
}

/// What is JSON for every reader; anything else is a text. A key that stands twice would be one answer to some and another to others.
fn parsed(body: &[u8]) -> Value {
    let json = std::str::from_utf8(body).ok().and_then(|text| Json::parse(text).ok());
    let value = json.and_then(|json| serde_json::from_str(json.as_str()).ok());
    value.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned().into())
}

/// Cut between characters.
pub(super) fn shortened(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text
}
