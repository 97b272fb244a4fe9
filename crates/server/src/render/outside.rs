//! The work outside that a job waits for, as its service last told it: read with the job, so that no poll writes to the job.

use std::borrow::Cow;
use std::sync::Arc;

use api::{Outside, OutsideError, ProgressEvent};
use domain::job::{CancelAnswer, Job, JobState, JobStateName};
use domain::operation::{Operation, ReportedStatus};
use domain::policy::Persistence;
use domain::{BodyRef, Record, RecordId};
use engine::hint_text;
use store::Store;

use crate::Result;
use crate::clock_text::text;
use crate::problem::of_store;

/// The operation that a job waits for, if it waits for one.
pub(crate) async fn awaited(store: &dyn Store, job: &Job) -> Result<Option<Arc<Record>>> {
    let JobState::AwaitingExternal { operation, .. } = &job.state else { return Ok(None) };
    let loaded = store.load(&RecordId::Operation(operation.clone())).await.map_err(of_store)?;
    Ok(loaded.map(|loaded| loaded.record))
}

/// The same, with the words of its service. Only for an answer about one job to whoever may read its result: lists, logs and
/// facts hold a code, a status and a digest in their place.
pub(crate) async fn with_words(store: &dyn Store, record: Arc<Record>) -> Result<Arc<Record>> {
    let Some(operation) = record.as_operation() else { return Ok(record) };
    let of_poll = operation.last_error.as_ref().and_then(|error| error.said);
    let of_cancel = operation.cancel.as_ref().and_then(|cancel| cancel.answers.last()?.said);
    if of_poll.is_none() && of_cancel.is_none() {
        return Ok(record);
    }
    let (poll, cancel) = (words(store, operation, of_poll).await?, words(store, operation, of_cancel).await?);
    let mut told = operation.clone();
    if let (Some(error), Some(words)) = (&mut told.last_error, poll) {
        error.message = words;
    }
    let answer = told.cancel.as_mut().and_then(|cancel| cancel.answers.last_mut());
    if let (Some(answer), Some(words)) = (answer, cancel) {
        answer.answer = CancelAnswer::Refused(words);
    }
    Ok(Arc::new(Record::Operation(Box::new(told))))
}

/// A private text of an operation; nothing if it was purged, or is not among the first that are kept.
async fn words(store: &dyn Store, operation: &Operation, said: Option<BodyRef>) -> Result<Option<String>> {
    let Some(said) = said.filter(|said| operation.texts.contains(said)) else { return Ok(None) };
    let bytes = store.body(&RecordId::Operation(operation.id.clone()), said).await.map_err(of_store)?;
    Ok(bytes.map(|bytes| hint_text(&String::from_utf8_lossy(&bytes))))
}

/// Where it is, how often its service was asked, and when it is asked next.
pub(crate) fn outside(operation: &Operation) -> Outside<'_> {
    Outside {
        operation_id: Cow::Borrowed(operation.id.as_str()),
        service: Cow::Borrowed(&operation.link.kind),
        status: Cow::Borrowed(operation.status().as_str()),
        progress_hint: operation.progress_hint.as_deref().map(Cow::Borrowed),
        polls: operation.polls,
        dispatched_at: Cow::Owned(text(operation.dispatched_at)),
        last_polled_at: operation.last_polled_at.map(|at| Cow::Owned(text(at))),
        next_poll_at: operation.ended.is_none().then(|| Cow::Owned(text(operation.next_poll_at))),
        expires_at: Cow::Owned(text(operation.expires_at)),
        external_job_id: operation.external_job_id.as_deref().map(Cow::Borrowed),
        persistence: operation.is_volatile().then_some(Cow::Borrowed(Persistence::Volatile.as_str())),
        interval_seconds: operation.interval_seconds,
        clamps: operation.clamps().into_iter().map(super::limit::clamp).collect(),
        last_error: operation.last_error.as_ref().map(|error| OutsideError {
            code: Cow::Borrowed(&error.code),
            message: Cow::Owned(error.shown()),
            in_row: operation.errors_in_row,
        }),
    }
}

/// The free label of a job whose attempt has set none: what its service reports.
pub(super) fn phase(operation: &Operation) -> &'static str {
    match operation.reported {
        ReportedStatus::Pending => "pending outside",
        ReportedStatus::Running => "running outside",
    }
}

/// What its service last had to say for people, as the newest note.
pub(super) fn event(operation: &Operation) -> Option<ProgressEvent<'_>> {
    let hint = operation.progress_hint.as_deref()?;
    let at = operation.last_polled_at.unwrap_or(operation.dispatched_at);
    Some(ProgressEvent {
        at: Cow::Owned(text(at)),
        note: Cow::Borrowed(hint),
        state: Cow::Borrowed(JobStateName::AwaitingExternal.as_str()),
        phase: Some(Cow::Borrowed(phase(operation))),
    })
}
