//! The work outside that a job waits for, as its service last told it: read with the job, so that no poll writes to the job.

use std::borrow::Cow;
use std::sync::Arc;

use api::{Outside, OutsideError, Problem, ProgressEvent};
use domain::job::{Job, JobState, JobStateName};
use domain::operation::{Operation, ReportedStatus};
use domain::{Record, RecordId};
use store::Store;

use crate::clock_text::text;
use crate::problem::of_store;

/// The operation that a job waits for, if it waits for one.
pub(crate) async fn awaited(store: &dyn Store, job: &Job) -> Result<Option<Arc<Record>>, Problem> {
    let JobState::AwaitingExternal { operation, .. } = &job.state else { return Ok(None) };
    let loaded = store.load(&RecordId::Operation(operation.clone())).await;
    Ok(loaded.map_err(|error| of_store(&error))?.map(|loaded| loaded.record))
}

/// The operation behind a record that is one.
pub(crate) fn operation_of(record: &Record) -> Option<&Operation> {
    match record {
        Record::Operation(operation) => Some(operation),
        Record::Job(_) | Record::Event(_) | Record::Run(_) => None,
    }
}

/// Where it is, how often its service was asked, and when it is asked next.
pub(crate) fn outside(operation: &Operation) -> Outside<'_> {
    Outside {
        operation_id: Cow::Borrowed(operation.id.as_str()),
        service: Cow::Borrowed(service_of(operation)),
        status: Cow::Borrowed(operation.status().as_str()),
        progress_hint: operation.progress_hint.as_deref().map(Cow::Borrowed),
        polls: operation.polls,
        dispatched_at: Cow::Owned(text(operation.dispatched_at)),
        last_polled_at: operation.last_polled_at.map(|at| Cow::Owned(text(at))),
        next_poll_at: operation.ended.is_none().then(|| Cow::Owned(text(operation.next_poll_at))),
        expires_at: Cow::Owned(text(operation.expires_at)),
        last_error: operation.last_error.as_ref().map(|error| OutsideError {
            code: Cow::Borrowed(&error.code),
            message: Cow::Borrowed(&error.message),
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

/// What people call the service: the name of its executor.
fn service_of(operation: &Operation) -> &str {
    &operation.link.kind
}
