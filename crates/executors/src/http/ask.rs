//! Asks a service about work that it has: how it goes, what came of it, and to stop it. All of it may be asked twice.

use domain::job::CancelAnswer;
use domain::operation::{Operation, PollError};
use serde_json::json;

use super::HttpConnector;
use super::call::Call;
use super::file::State;
use super::handle::Handle;
use super::interpret::{self, Asked, Reading};
use crate::outbound::{Answer, OutboundRequest};
use engine::{CancelReply, Outside, Polled};

impl HttpConnector {
    pub(super) async fn ask(&self, outside: Outside) -> Result<Polled, PollError> {
        let Some(status) = &self.connector.status else {
            return Err(error("poll_not_supported", "the connector has no status request any more"));
        };
        let handle = handle_of(&outside)?;
        let answer = self.answer("status", status, &handle, &outside.operation).await?;
        let reading = Reading::new(&answer, status, self.clock.now());
        match interpret::asked(status, answer.status) {
            Asked::Gone => return Ok(Polled::Unknown),
            Asked::NotAnswered(code) => {
                let error = PollError { status: Some(answer.status), ..error(code, reading.complaint()) };
                return Ok(Polled::NotNow { error, retry_after: reading.retry_after() });
            }
            Asked::Answered => {}
        }
        if let Some(named) = reading.names_other_work(&handle.remote_id, &self.connector.submit) {
            let message = format!("the answer is about other work ({named:?}) than was asked for");
            return Err(error("status_of_other_work", self.masked(message)));
        }
        let state = reading.state(&self.connector.states);
        let state = state.map_err(|error| PollError { status: Some(answer.status), ..error })?;
        if let Some(open) = interpret::open(state) {
            return Ok(Polled::Open(open, reading.hints()));
        }
        Ok(match state {
            // Of work that was given up nobody wants the result.
            State::Completed => {
                match self.connector.result.as_ref().filter(|_| outside.operation.ended.is_none()) {
                    Some(result) => return self.fetch(result, &handle, &outside.operation).await,
                    None => completed(&reading),
                }
            }
            State::Failed => Polled::Failed(reading.failure("service_failed")),
            State::TimedOut => Polled::TimedOut,
            State::Cancelled => Polled::Cancelled,
            State::Expired => Polled::Expired,
            State::Unknown | State::Pending | State::Running => Polled::Unknown,
        })
    }

    pub(super) async fn ask_to_stop(&self, outside: Outside) -> CancelReply {
        let Some(cancel) = &self.connector.cancel else {
            let why = self.connector.not_cancelable_because.clone();
            return CancelReply::not_asked(CancelAnswer::Refused(why));
        };
        let request =
            handle_of(&outside).and_then(|handle| self.request_for(cancel, &handle, &outside.operation));
        let request = match request {
            Ok(request) => request,
            // It will not be rendered better next time.
            Err(why) => {
                let told = format!("not asked: {}", why.code);
                return CancelReply::told(CancelAnswer::Refused(why.message), told);
            }
        };
        match self.exchange(cancel, request).await {
            Ok(answer) => {
                let reading = Reading::new(&answer, cancel, self.clock.now());
                let means = reading.cancelled(&self.connector.cancel_confirmed, &self.connector.states);
                CancelReply::told(means, format!("HTTP {}", answer.status))
            }
            Err(failed) => CancelReply::told(CancelAnswer::Unreachable, failed.code()),
        }
    }

    /// The result of work that is completed. Until it is here, the work is not done for us.
    async fn fetch(
        &self,
        result: &Call,
        handle: &Handle,
        operation: &Operation,
    ) -> Result<Polled, PollError> {
        let answer = self.answer("result", result, handle, operation).await?;
        let reading = Reading::new(&answer, result, self.clock.now());
        if result.accepts(answer.status) {
            return Ok(completed(&reading));
        }
        let error = error("result_not_fetched", reading.complaint());
        Err(PollError { status: Some(answer.status), ..error })
    }

    /// A request about work that is there, to an origin that the operator knows.
    fn request_for(
        &self,
        call: &Call,
        handle: &Handle,
        operation: &Operation,
    ) -> Result<OutboundRequest, PollError> {
        let job = json!({
            "id": operation.link.job_id.as_str(),
            "attempt_id": operation.link.attempt_id.as_str(),
        });
        let context = super::context(handle.input.as_ref(), job, handle.operation(), self.secrets.lent());
        let request = call
            .request(&context, Some(&handle.base), self.clock.now())
            .map_err(|why| error("request_not_rendered", self.masked(why)))?;
        let origin = request.url.origin();
        if origin == handle.base.origin() || self.connector.origins.contains(&origin) {
            return Ok(request);
        }
        // The service names a URL of its own choice, and the request may hold our credentials.
        let message = format!(
            "the service sends to {}, which is not where the work was submitted: list it under origins if it may be asked",
            origin.ascii_serialization()
        );
        Err(error("foreign_origin", self.masked(message)))
    }

    /// What the service answers to a question about work that is there.
    async fn answer(
        &self,
        what: &str,
        call: &Call,
        handle: &Handle,
        operation: &Operation,
    ) -> Result<Answer, PollError> {
        let request = self.request_for(call, handle, operation)?;
        let answer = self.exchange(call, request).await;
        answer.map_err(|failed| error(failed.code(), self.masked(call.told(what, &failed))))
    }
}

fn handle_of(outside: &Outside) -> Result<Handle, PollError> {
    Handle::parse(&outside.handle)
        .ok_or_else(|| error("handle_unreadable", "nothing is kept by which the work can be found"))
}

fn completed(reading: &Reading<'_>) -> Polled {
    reading.output().map_or_else(Polled::Failed, Polled::Completed)
}

fn error(code: &str, message: impl Into<String>) -> PollError {
    PollError {
        code: code.to_owned(),
        message: interpret::shortened(message.into(), domain::limits::MAX_NOTE_BYTES),
        ..PollError::default()
    }
}
