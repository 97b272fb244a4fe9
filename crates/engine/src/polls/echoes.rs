//! What is said of work outside, without what repeats the input of its job. The input is read only if there is a text or code to compare.

use domain::operation::{Operation, PollHints};
use domain::{BodyName, JobId, Json, Record, RecordId};
use serde_json::Value;

use super::question::Question;
use crate::echoed_text::hints_without_echo;
use crate::{EngineError, Polled};

impl Question<'_> {
    /// The same without codes and texts that repeat the input of the job.
    pub(super) async fn without_echo(
        &self,
        operation: &Operation,
        polled: Polled,
    ) -> Result<Polled, EngineError> {
        let job_id = &operation.link.job_id;
        Ok(match polled {
            Polled::Open(status, hints) if has_new_words(operation, &hints) => {
                Polled::Open(status, hints_without_echo(hints, self.input_of(job_id).await?.as_ref()))
            }
            Polled::Completed(output) if output.summary.is_some() => {
                Polled::Completed(output.without_echo(self.input_of(job_id).await?.as_ref()))
            }
            Polled::Failed(failure) if failure.usual_reason().is_some() => {
                Polled::Failed(failure.without_echo(self.input_of(job_id).await?.as_ref()))
            }
            other @ (Polled::Open(..)
            | Polled::Completed(_)
            | Polled::Failed(_)
            | Polled::TimedOut
            | Polled::Cancelled
            | Polled::Expired
            | Polled::Unknown
            | Polled::NotNow { .. }
            | Polled::NobodyToAsk(_)) => other,
        })
    }

    /// The input of a job, null if it was given none; nothing if it is not there any more.
    async fn input_of(&self, job_id: &JobId) -> Result<Option<Value>, EngineError> {
        let (store, id) = (self.engine().store(), RecordId::from(job_id.clone()));
        let Some(loaded) = store.load(&id).await? else { return Ok(None) };
        let Record::Job(job) = &*loaded.record else { return Ok(None) };
        match job.bodies.iter().find(|body| body.name == BodyName::Input) {
            None => Ok(job.purged_at.is_none().then_some(Value::Null)),
            Some(input) => {
                let bytes = store.body(&id, *input).await?;
                Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
            }
        }
    }
}

/// Whether a text came that is not on the record yet: what is there was compared when it came.
fn has_new_words(operation: &Operation, hints: &PollHints) -> bool {
    let is_new_hint = hints.progress_hint.is_some() && hints.progress_hint != operation.progress_hint;
    let is_new_progress = hints.progress.is_some() && hints.progress != operation.progress;
    is_new_hint || (is_new_progress && hints.progress.as_ref().is_some_and(holds_text))
}

fn holds_text(progress: &Json) -> bool {
    // `{"percent":40}` is the usual one: no text, and no name that could be one.
    progress.as_str().matches('"').count() != 2 || !progress.as_str().starts_with("{\"percent\":")
}
