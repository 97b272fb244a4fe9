//! What can be read: one record, or pages of them by cursor.

use std::sync::Arc;

use domain::job::{Job, JobStateName};
use domain::{Claim, JobId, Record, Timestamp};

use crate::Checksum;

/// A record as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its state.
    pub record: Arc<Record>,
    /// The head of its stream.
    pub head: Head,
    /// Who holds it or held it last.
    pub claim: Option<Claim>,
}

/// Where a stream ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// How many facts it has.
    pub version: u64,
    /// The checksum of the last one.
    pub checksum: Checksum,
}

/// Which jobs, and from where on.
#[derive(Clone, Debug, Default)]
pub struct JobQuery {
    /// Which.
    pub filter: JobFilter,
    /// After this one.
    pub after: Option<Cursor>,
    /// The most; at most `limits::MAX_PAGE`.
    pub limit: usize,
}

/// Which jobs: all that fit every given field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// In this state.
    pub state: Option<JobStateName>,
    /// Of this owner.
    pub owner_peer_id: Option<String>,
    /// Of this creator.
    pub created_by_peer_id: Option<String>,
    /// Of this workstream.
    pub session_id: Option<String>,
    /// Of this circle.
    pub circle: Option<String>,
}

/// A place in a list sorted by newest change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The last change of the job there.
    pub updated_at: Timestamp,
    /// The job there.
    pub id: JobId,
}

/// One page of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The jobs, newest change first.
    pub jobs: Vec<Arc<Record>>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Cursor>,
}

impl JobFilter {
    /// Whether a job fits.
    pub fn fits(&self, job: &Job) -> bool {
        let equal = |wanted: &Option<String>, has: &Option<String>| wanted.is_none() || wanted == has;
        self.state.is_none_or(|state| state == job.state.name())
            && equal(&self.owner_peer_id, &job.spec.owner_peer_id)
            && equal(&self.created_by_peer_id, &job.spec.created_by_peer_id)
            && equal(&self.session_id, &job.spec.session_id)
            && equal(&self.circle, &job.spec.circle)
    }
}
