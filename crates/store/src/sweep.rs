//! Which sweep looks for records that are due: jobs and operations have one each, all other kinds of record share one.

use domain::RecordKind;

/// A sweep over due records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Over jobs.
    Jobs,
    /// Over operations.
    Operations,
    /// Over all other kinds.
    Records,
}

impl Sweep {
    /// The sweep that a kind belongs to.
    pub fn of(kind: RecordKind) -> Self {
        if kind == RecordKind::Job {
            Self::Jobs
        } else if kind == RecordKind::Operation {
            Self::Operations
        } else {
            Self::Records
        }
    }

    /// The kinds that belong to it.
    pub fn kinds(self) -> impl Iterator<Item = RecordKind> + Clone {
        RecordKind::ALL.into_iter().filter(move |kind| Self::of(*kind) == self)
    }
}
