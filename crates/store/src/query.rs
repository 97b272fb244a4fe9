//! What can be read: one record, or pages of them by cursor.

use std::sync::Arc;

use domain::job::{Job, JobStateName};
use domain::operation::Operation;
use domain::{Claim, JobId, OperationId, Record, Timestamp};

use crate::commit::limits::{MAX_EXAMINED, MAX_PAGE};
use crate::{Checksum, NewBody};

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

/// A record as this process wrote or took it last. Another may have changed it since: it is for whoever commits against its head, and reads
/// before refusing anything.
#[derive(Clone, Debug)]
pub struct Remembered {
    /// Its state then.
    pub record: Arc<Record>,
    /// The head of its stream then.
    pub head: Head,
    /// Those of its bodies that are at hand.
    pub bodies: Vec<NewBody>,
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
///
/// A page looks at no more than `limits::MAX_EXAMINED` jobs: those of the workstream, else of the owner, else of the creator,
/// else of the circle that is asked for, newest change first. If few of them fit, the page is short or even empty, and `next`
/// says where to go on.
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
    /// With this tag.
    pub tag: Option<String>,
}

/// A place in a list sorted by newest change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The last change of the job there.
    pub updated_at: Timestamp,
    /// The job there.
    pub id: JobId,
}

/// One page of jobs: the last one has no `next`, any other may be short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The jobs, newest change first.
    pub jobs: Vec<Arc<Record>>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Cursor>,
}

impl Page {
    /// The page of these jobs, which are sorted and one more than it holds, if there are so many: what does not fit makes it short.
    pub fn of_sorted(mut found: Vec<Arc<Record>>, query: &JobQuery) -> Self {
        let limit = query.limit.min(MAX_PAGE);
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().and_then(|last| last.as_job()).filter(|_| more).map(Cursor::of);
        found.retain(|record| record.as_job().is_some_and(|job| query.filter.fits(job)));
        Self { jobs: found, next }
    }
}

impl Cursor {
    /// The place of a job in the list.
    pub fn of(job: &Job) -> Self {
        Self { updated_at: job.updated_at, id: job.id.clone() }
    }
}

/// How many jobs are not over, of those that name an executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenJobs {
    /// Of the executor asked for.
    pub of_executor: u64,
    /// Of all executors.
    pub total: u64,
}

/// A place in the list of orphans: oldest end first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrphanCursor {
    /// When the operation there ended while its work may have gone on.
    pub orphaned_at: Timestamp,
    /// The operation there.
    pub id: OperationId,
}

impl OrphanCursor {
    /// Where an operation stands in the list, if it does.
    pub fn of(operation: &Operation) -> Option<Self> {
        let orphaned_at = operation.orphan().and(operation.completed_at())?;
        Some(Self { orphaned_at, id: operation.id.clone() })
    }
}

impl JobFilter {
    /// Whether a job fits.
    pub fn fits(&self, job: &Job) -> bool {
        let equal = |wanted: &Option<String>, has: &Option<String>| wanted.is_none() || wanted == has;
        self.state.is_none_or(|state| state == job.state.name())
            && self.owner_peer_id.as_deref().is_none_or(|owner| job.owner_peer() == Some(owner))
            && equal(&self.created_by_peer_id, &job.spec.created_by_peer_id)
            && equal(&self.session_id, &job.spec.session_id)
            && equal(&self.circle, &job.spec.circle)
            && self.tag.as_ref().is_none_or(|tag| job.spec.tags.contains(tag))
    }
}

/// The field of a filter whose jobs are looked at one after the other; the other fields only sort out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leading<'a> {
    /// The jobs of this workstream.
    Session(&'a str),
    /// The jobs of this owner.
    Owner(&'a str),
    /// The jobs of this creator.
    Creator(&'a str),
    /// The jobs of this circle.
    Circle(&'a str),
    /// All jobs, or all in the state asked for: every one of them fits.
    States,
}

impl JobFilter {
    /// The field that leads.
    pub fn leading(&self) -> Leading<'_> {
        match self {
            Self { session_id: Some(session_id), .. } => Leading::Session(session_id),
            Self { owner_peer_id: Some(owner), .. } => Leading::Owner(owner),
            Self { created_by_peer_id: Some(creator), .. } => Leading::Creator(creator),
            Self { circle: Some(circle), .. } => Leading::Circle(circle),
            Self { .. } => Leading::States,
        }
    }
}

/// A page as it is put together: the same rule for every list of every store.
#[derive(Debug)]
pub struct PageWalk<C, T> {
    limit: usize,
    examined: usize,
    found: Vec<T>,
    last: Option<C>,
    more: bool,
}

impl<C, T> PageWalk<C, T> {
    /// A page of at most so many.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.min(MAX_PAGE), examined: 0, found: Vec::new(), last: None, more: false }
    }

    /// Looks at the next one, at this place in the list, and what is to be kept of it if it fits; whether another one is wanted.
    pub fn look_at(&mut self, cursor: C, found: Option<T>) -> bool {
        if self.examined == MAX_EXAMINED || (found.is_some() && self.found.len() == self.limit) {
            self.more = true;
            return false;
        }
        self.examined += 1;
        self.found.extend(found);
        self.last = Some(cursor);
        true
    }

    /// What was found, and where the next page begins, if there may be one.
    pub fn finish(self) -> (Vec<T>, Option<C>) {
        (self.found, self.last.filter(|_| self.more))
    }
}
