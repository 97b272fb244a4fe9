//! Stale reports that left no evidence: each is counted on its job, and none is counted twice.
//!
//! A node that dies, and a store that does not answer, take along what was not written down: only when nothing goes wrong is each one
//! required (`must_all_count`).

use domain::RecordId;
use engine::Evidence;

use super::{Checker, Violation, must};

/// Reports on one job that were refused as stale.
#[derive(Clone, Copy, Default)]
pub(super) struct Refused {
    reports: u64,
    stored: u64,
    counted: u64,
    /// What must be counted at least when the run ends.
    expected: Option<u64>,
}

impl Checker {
    /// A report on an attempt of this job was refused as stale.
    pub fn refused_as_stale(&mut self, job: RecordId, evidence: Evidence) {
        let refused = self.refused.entry(job).or_default();
        refused.reports += 1;
        match evidence {
            Evidence::Stored => refused.stored += 1,
            Evidence::None => refused.expected = refused.expected.map(|expected| expected + 1),
        }
    }

    /// From now on nothing goes wrong: every report on this job that is refused is stored or counted.
    pub fn must_all_count(&mut self, job: RecordId) {
        let refused = self.refused.entry(job).or_default();
        refused.expected = Some(refused.counted);
    }

    pub(super) fn counted(&mut self, job: &RecordId, count: u32) -> Result<(), Violation> {
        let refused = self.refused.entry(job.clone()).or_default();
        refused.counted += u64::from(count);
        let Refused { reports, stored, counted, .. } = *refused;
        must(counted + stored <= reports, "stale", || {
            format!("{job}: {stored} stored and {counted} counted of {reports} refused reports")
        })
    }

    /// Refused reports are those that are stored and those that are counted: asked at the end.
    pub fn all_counted(&self) -> Result<(), Violation> {
        let kept = self.refused.iter().filter(|(job, _)| !self.retired.contains(*job));
        for (job, Refused { reports, stored, counted, expected }) in kept {
            must(expected.is_none_or(|expected| *counted >= expected), "stale", || {
                format!("{job}: {stored} stored and {counted} counted of {reports} refused reports")
            })?;
        }
        Ok(())
    }
}
