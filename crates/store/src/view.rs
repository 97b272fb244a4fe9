//! Views as text and columns: the state of a record as JSON, and beside it what is sorted or filtered by. Jobs and operations have columns of
//! their own, all other kinds those of their `domain::Summary`.
//!
//! Columns are a pure function of the state, so that `verify` can compare every one of them.

use std::fmt::Write;
use std::sync::Arc;

use domain::job::{Job, JobStateName};
use domain::operation::{Operation, OperationStatus};
use domain::{Record, RecordId, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::{Checksum, Head, StoreError};

/// The format of the stored views. Raise it when the JSON of a state changes; lower ones are rebuilt at start. A checkpoint keeps its state as
/// it was written: where today's reader would not take it, `upcast.rs` lifts it, by the format that stands in the checkpoint.
pub const VIEW_FORMAT: i64 = 10;

/// Room for most views, so that they are not moved while they grow.
const USUAL_VIEW_BYTES: usize = 2_048;

/// What is added to a view: the member, a version and two checksums in hex digits, and the end.
const SEAL_MEMBER: &str = ",\"sealed\":\"";
const VERSION_DIGITS: usize = 16;
const SEAL_BYTES: usize = SEAL_MEMBER.len() + VERSION_DIGITS + 64 + 2;

/// The columns of a job beside its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobColumns<'a> {
    /// Where it is.
    pub state: JobStateName,
    /// When anything last happened to it.
    pub updated_at: Timestamp,
    /// Who owns it.
    pub owner_peer_id: Option<&'a str>,
    /// Who created it.
    pub created_by_peer_id: Option<&'a str>,
    /// Its workstream.
    pub session_id: Option<&'a str>,
    /// Who may see it.
    pub circle: Option<&'a str>,
}

/// The columns of an operation beside its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationColumns<'a> {
    /// The job that it belongs to.
    pub job_id: &'a str,
    /// One of the eight statuses.
    pub status: OperationStatus,
    /// When anything last happened to it.
    pub updated_at: Timestamp,
    /// When it ended while the work may still run outside.
    pub orphaned_at: Option<Timestamp>,
}

impl<'a> From<&'a Job> for JobColumns<'a> {
    fn from(job: &'a Job) -> Self {
        Self {
            state: job.state.name(),
            updated_at: job.updated_at,
            owner_peer_id: job.owner_peer(),
            created_by_peer_id: job.spec.created_by_peer_id.as_deref(),
            session_id: job.spec.session_id.as_deref(),
            circle: job.spec.circle.as_deref(),
        }
    }
}

impl<'a> From<&'a Operation> for OperationColumns<'a> {
    fn from(operation: &'a Operation) -> Self {
        Self {
            job_id: operation.link.job_id.as_str(),
            status: operation.status(),
            updated_at: operation.updated_at,
            orphaned_at: operation.orphan().and(operation.completed_at()),
        }
    }
}

/// The state as JSON.
pub fn encode_view(record: &Record) -> String {
    let mut view = Vec::with_capacity(USUAL_VIEW_BYTES);
    serde_json::to_writer(&mut view, record).expect("states have only string keys and finite numbers");
    String::from_utf8(view).expect("JSON is UTF-8")
}

/// The view as it is stored: the state as JSON, with a last member that shows whether it is whole, and of which fact it is.
pub fn seal_view(id: &RecordId, head: Head, mut view: String) -> String {
    view.pop();
    let seal = seal(id, head, &view);
    view.reserve(SEAL_BYTES);
    view.push_str(SEAL_MEMBER);
    write!(view, "{:016x}{}{seal}\"}}", head.version, head.checksum).expect("a text takes everything");
    view
}

fn seal(id: &RecordId, head: Head, view: &str) -> Checksum {
    let mut hash = Sha256::new();
    hash.update((id.as_str().len() as u64).to_be_bytes());
    hash.update(id.as_str());
    hash.update(head.version.to_be_bytes());
    hash.update(head.checksum.0);
    hash.update(view);
    let mut half = [0; 16];
    half.copy_from_slice(&hash.finalize()[..16]);
    Checksum(half)
}

/// The fact that a stored view is of, if the view is whole.
fn unseal(id: &RecordId, view: &str) -> Option<Head> {
    let (state, member) = view.split_at_checked(view.len().checked_sub(SEAL_BYTES)?)?;
    let digits = member.strip_prefix(SEAL_MEMBER)?.strip_suffix("\"}")?;
    let (version, checksums) = digits.split_at_checked(VERSION_DIGITS)?;
    let checksums = domain::Digest::from_hex(checksums)?;
    let mut head = Head { version: u64::from_str_radix(version, 16).ok()?, ..Head::default() };
    head.checksum.0.copy_from_slice(&checksums.0[..16]);
    (seal(id, head, state).0 == checksums.0[16..]).then_some(head)
}

/// The state from its stored view, and the fact that it is of. A view of which one bit has changed is refused.
pub fn decode_sealed_view(id: &RecordId, view: &str) -> Result<(Arc<Record>, Head), StoreError> {
    let damaged = || StoreError::Broken(format!("the view of {id} is damaged; run `longhaul verify`"));
    let head = unseal(id, view).ok_or_else(damaged)?;
    Ok((decode(id, view)?, head))
}

/// The state from its stored view.
pub fn decode_view(id: &RecordId, view: &str) -> Result<Arc<Record>, StoreError> {
    decode_sealed_view(id, view).map(|(record, _)| record)
}

fn decode(id: &RecordId, view: &str) -> Result<Arc<Record>, StoreError> {
    let mut from = serde_json::Deserializer::from_str(view);
    let record = Record::read(id, &mut from).and_then(|record| from.end().map(|()| record));
    let record =
        record.map_err(|error| StoreError::Broken(format!("the view of {id} cannot be read: {error}")))?;
    Ok(Arc::new(record))
}

#[cfg(test)]
mod tests {
    use domain::JobId;

    use super::*;

    #[test]
    fn sealed_view_with_a_changed_byte_is_refused() {
        let id = RecordId::Job(JobId::new("work-1"));
        let head = Head { version: 7, checksum: Checksum([3; 16]) };
        let sealed = seal_view(&id, head, "{\"a\":1,\"b\":\"two\"}".to_owned());
        assert!(serde_json::from_str::<serde_json::Value>(&sealed).is_ok());
        assert_eq!(unseal(&id, &sealed), Some(head));
        assert_eq!(unseal(&RecordId::Job(JobId::new("work-2")), &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] ^= 1;
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(unseal(&id, &changed), None, "byte {at}");
        }
        for short in ["", "{}", "{\"a\":1}", &sealed[..sealed.len() - 1]] {
            assert_eq!(unseal(&id, short), None);
        }
    }
}
