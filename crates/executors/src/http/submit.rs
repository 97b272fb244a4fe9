//! Gives work to a service, under an intent: what is rendered before it is written down, what is sent only afterwards.

use domain::OperationId;
use domain::job::{Job, Resubmit};
use domain::operation::Cancelability;
use http::HeaderValue;
use serde_json::{Map, Value, json};
use store::sha256;
use url::Url;

use super::HttpConnector;
use super::call::Call;
use super::file::State;
use super::handle::Handle;
use super::interpret::{self, Asked, Reading, Submission};
use crate::outbound::{OutboundError, OutboundRequest};
use crate::process::limited_by_some;
use engine::{Assignment, Deferral, Failure, Intended, Intent, Link, ModeSupport, Produced};

/// What one job brings to its requests.
pub(super) struct Work {
    pub(super) job: Value,
    pub(super) input: Value,
}

impl Work {
    pub(super) fn of(assignment: &Assignment) -> Self {
        let input = serde_json::from_slice(&assignment.input).unwrap_or_default();
        let Job { id, spec, .. } = &*assignment.job;
        let job = json!({
            "id": id.as_str(),
            "title": spec.title,
            "kind": spec.kind,
            "tags": spec.tags,
            "priority": spec.priority,
            "session_id": spec.session_id,
            "correlation_id": spec.correlation_id,
            "attempt_id": assignment.attempt_id.as_str(),
            "attempt_number": assignment.attempt_number,
        });
        Self { job, input }
    }
}

impl HttpConnector {
    pub(super) async fn submit(&self, assignment: Assignment, link: Link) -> Produced {
        let work = Work::of(&assignment);
        let digest = match self.digest(&work) {
            Ok(digest) => digest,
            Err(failure) => return Produced::Failed(failure),
        };
        let asks_again = self.connector.idempotent || self.connector.lookup.is_some();
        let resubmit = if asks_again { Resubmit::SameKey } else { Resubmit::Never };
        match link.intend(Intent { request_sha256: digest, resubmit }).await {
            Ok(intended) => {
                store::failpoint("submit.intended");
                self.submit_intended(&work, intended).await
            }
            // Nothing was sent; whoever stops it knows why.
            Err(_) => Produced::Stopped,
        }
    }

    /// Submits under this key. When an earlier attempt may have done so, the service is asked for it first, if it can be.
    pub(super) async fn submit_intended(&self, work: &Work, intended: Intended) -> Produced {
        let Intended { key, mut again } = intended;
        if let (true, Some(lookup)) = (again, &self.connector.lookup) {
            match self.look_up(lookup, work, &key).await {
                Ok(Some(produced)) => return produced,
                Ok(None) => again = false,
                Err(failure) => return Produced::SubmitUnknown(failure),
            }
        }
        let produced = self.send_submit(work, &key, again).await;
        if let (true, Produced::Failed(failure)) = (again, &produced) {
            // What this request did not start, the earlier one may have.
            return Produced::SubmitUnknown(failure.clone());
        }
        produced
    }

    async fn send_submit(&self, work: &Work, key: &OperationId, again: bool) -> Produced {
        let call = &self.connector.submit;
        let request = match self.submit_request(work, key, self.secrets.lent()) {
            Ok(request) => request,
            Err(failure) => return Produced::Failed(failure),
        };
        let base = request.url.clone();
        let answer = match self.exchange(call, request).await {
            Ok(answer) => answer,
            Err(error) => return self.not_answered(call, &error),
        };
        store::failpoint("submit.sent");
        let reading = Reading::new(&answer, call, self.clock.now());
        match interpret::submission(call, answer.status) {
            Submission::Accepted => self.accepted(work, key, base, &reading),
            // The same key is being worked on.
            Submission::Refused if again && answer.status == 409 => {
                Produced::SubmitUnknown(reading.failure("submit_in_progress"))
            }
            Submission::Refused => Produced::Failed(reading.failure("submit_refused")),
            Submission::NotNow => Produced::Failed(Failure {
                retry_after: reading.retry_after(),
                ..Failure::transient("service_busy", reading.complaint())
            }),
            Submission::Unclear => {
                Produced::SubmitUnknown(Failure::transient("service_error", reading.complaint()))
            }
        }
    }

    /// The work that the service has under this key, or nothing if it has none.
    async fn look_up(
        &self,
        lookup: &Call,
        work: &Work,
        key: &OperationId,
    ) -> Result<Option<Produced>, Failure> {
        let failed = |code: &str, message: String| Failure::transient(code, message);
        let request = self.request_of(lookup, work, key, self.secrets.lent())?;
        let base = request.url.clone();
        let answer = self.exchange(lookup, request).await;
        let answer =
            answer.map_err(|error| failed("lookup_failed", self.masked(lookup.told("lookup", &error))))?;
        let reading = Reading::new(&answer, lookup, self.clock.now());
        match interpret::asked(lookup, answer.status) {
            Asked::Gone => Ok(None),
            Asked::NotAnswered(code) => {
                Err(Failure { retry_after: reading.retry_after(), ..failed(code, reading.complaint()) })
            }
            // A list without our key in it answers as well.
            Asked::Answered if lookup.read.id.is_some() && reading.id().is_none() => Ok(None),
            Asked::Answered => Ok(Some(self.accepted(work, key, base, &reading))),
        }
    }

    /// What a service that took the work has to say: a result, an end without one, or that it goes on.
    fn accepted(&self, work: &Work, key: &OperationId, base: Url, reading: &Reading<'_>) -> Produced {
        let connector = &self.connector;
        match reading.state(&connector.states) {
            // Where the result has a request of its own, a poll fetches it; unless this answer is said to hold it.
            Ok(State::Completed) if connector.result.is_some() && !reading.holds_result() => {
                self.deferred(work, key, base, reading)
            }
            Ok(State::Completed) => completed(reading),
            Ok(State::Failed) => Produced::Failed(reading.failure("service_failed")),
            Ok(State::TimedOut) => Produced::Failed(reading.failure("service_timed_out")),
            Ok(State::Expired) => Produced::Failed(reading.failure("service_expired")),
            Ok(State::Cancelled) => Produced::Failed(reading.failure("service_cancelled")),
            Ok(State::Unknown) => Produced::SubmitUnknown(reading.failure("operation_unknown")),
            // A service that is never asked and whose answer names no state has done it.
            Err(_) if connector.modes.support == ModeSupport::SyncOnly && !reading.names_state() => {
                completed(reading)
            }
            Err(error) if connector.modes.support == ModeSupport::SyncOnly => {
                Produced::SubmitUnknown(Failure::permanent(&error.code, error.message))
            }
            // Work that goes on is a breach of what the connector said it does, and still goes on.
            Ok(State::Pending | State::Running) if connector.modes.support == ModeSupport::SyncOnly => {
                let message = "the service goes on with it, but its connector is sync-only".to_owned();
                Produced::SubmitUnknown(Failure::permanent("deferred_by_sync_only", message))
            }
            Ok(State::Pending | State::Running) | Err(_) => self.deferred(work, key, base, reading),
        }
    }

    fn deferred(&self, work: &Work, key: &OperationId, base: Url, reading: &Reading<'_>) -> Produced {
        let connector = &self.connector;
        let remote_id = reading.id();
        if connector.submit.read.id.is_some() && remote_id.is_none() {
            let message = format!("the service took it, but its answer has no id: {}", reading.complaint());
            return Produced::SubmitUnknown(Failure::transient("submit_without_id", message));
        }
        let kept = connector.keep.iter().map(|(name, template)| (name.clone(), reading.value(template)));
        let handle = Handle {
            key: key.as_str().to_owned(),
            base: self.place(base),
            remote_id: remote_id.unwrap_or_default(),
            location: reading.location(),
            kept: kept.collect::<Map<_, _>>(),
            input: connector.keeps_input.then(|| work.input.clone()),
        };
        Produced::Deferred(Deferral {
            cancelability: match (&connector.cancel, reading.not_cancelable_because()) {
                (Some(_), None) => Cancelability::Cancelable,
                (_, Some(told)) => Cancelability::NotCancelable(told),
                (None, None) => Cancelability::NotCancelable(connector.not_cancelable_because.clone()),
            },
            retry_after: reading.retry_after(),
            fail_after: reading.fail_after(),
            progress_hint: reading.progress_text(),
            external_job_id: handle.external_job_id(),
            ..Deferral::new(handle.to_bytes())
        })
    }

    /// A URL as it may be kept: where it leads, without what was asked there and without secrets.
    pub(super) fn place(&self, mut url: Url) -> Url {
        url.set_query(None);
        url.set_fragment(None);
        if let Ok(masked) = Url::parse(&self.masked(&url)) {
            return masked;
        }
        url.set_path("/");
        url
    }

    fn not_answered(&self, call: &Call, error: &OutboundError) -> Produced {
        let failure = Failure::transient(error.code(), self.masked(call.told("submit", error)));
        let failure = limited_by_some(failure, call.reached("submit", error).map(|(limit, _)| limit));
        match error {
            error if error.may_have_arrived() => Produced::SubmitUnknown(failure),
            OutboundError::InvalidRequest { .. } | OutboundError::RefusedAddress { .. } => {
                Produced::Failed(Failure::permanent(error.code(), failure.message))
            }
            OutboundError::ConnectFailed { .. }
            | OutboundError::TimedOut { .. }
            | OutboundError::TooLarge { .. }
            | OutboundError::TooManyRedirects { .. }
            | OutboundError::Tls { .. }
            | OutboundError::BadAnswer { .. } => Produced::Failed(failure),
        }
    }

    /// The digest of what will be sent, without the key, which is not known yet, and with secrets by name only.
    fn digest(&self, work: &Work) -> Result<domain::Digest, Failure> {
        let request = self.submit_request(work, &OperationId::new("op-"), self.secrets.named())?;
        let headers = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let parts =
            (request.method.as_str(), request.url.as_str(), headers.collect::<Vec<_>>(), &request.body);
        Ok(sha256(json!(parts).to_string().as_bytes()))
    }

    fn submit_request(
        &self,
        work: &Work,
        key: &OperationId,
        secrets: Value,
    ) -> Result<OutboundRequest, Failure> {
        let mut request = self.request_of(&self.connector.submit, work, key, secrets)?;
        if let (Some(name), Ok(value)) = (&self.connector.key_header, HeaderValue::from_str(key.as_str())) {
            request.headers.push((name.clone(), value));
        }
        Ok(request)
    }

    fn request_of(
        &self,
        call: &Call,
        work: &Work,
        key: &OperationId,
        secrets: Value,
    ) -> Result<OutboundRequest, Failure> {
        let callback_url = self.callbacks.as_ref().and_then(|callbacks| callbacks.url_for(key));
        let operation = json!({ "id": key.as_str(), "callback_url": callback_url });
        let context = super::context(Some(&work.input), work.job.clone(), operation, secrets);
        call.request(&context, None, self.clock.now())
            .map_err(|why| Failure::permanent("request_not_rendered", self.masked(why)))
    }
}

fn completed(reading: &Reading<'_>) -> Produced {
    reading.output().map_or_else(Produced::Failed, Produced::Completed)
}
