//! `/v1/capabilities` and `/v1/deferred-operations`: a face of the job. An executor is invoked; the caller waits for the result within
//! bounds, or takes a handle and asks later.
//!
//! Every call that is accepted is a job under the same admission, authorisation and idempotency as any other; nothing is kept here.
//! What leaves is checked against its schema first, and holds nothing private but the result of what is completed.

mod capability;
mod face;
mod handle;
mod invoke;
mod read;
mod schemas;
mod steer;
mod waited;

pub(crate) use capability::Capability;
pub(crate) use handle::{
    DIRECTIVE_ASYNC, DIRECTIVE_KIND, DIRECTIVE_REJECTED, DIRECTIVE_SYNC, OWN_SOURCES, is_directive,
    job_id_under, kind_of,
};
pub(crate) use invoke::{Call, Came, Source, carry_out, host_mode, invoke, invoke_as_host};
pub(crate) use read::{job_id_named, list, read_detail, read_status, result_of};
pub(crate) use schemas::{Document, check};
pub(crate) use steer::{cancel, poll, retry};
pub(crate) use waited::{Settled, why_over};
