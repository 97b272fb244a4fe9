//! The one file that makes randomness: ids and jitter.

use domain::{AttemptId, Jitter, JobId, OperationId, OwnerId};
use store::FactId;
use uuid::Uuid;

/// Where ids and jitter come from.
pub trait Ids: Send + Sync {
    /// 128 bits that were never given before and rise with time.
    fn next(&self) -> u128;

    /// A random share.
    fn jitter(&self) -> Jitter {
        Jitter(u16::try_from(self.next() & 0xffff).unwrap_or_default())
    }

    /// The name of a new fact.
    fn fact_id(&self) -> FactId {
        FactId(self.next().to_be_bytes())
    }

    /// The id of a new job.
    fn job_id(&self) -> JobId {
        JobId::new(format!("work-{:032x}", self.next()))
    }

    /// The id of a new attempt.
    fn attempt_id(&self) -> AttemptId {
        AttemptId::new(format!("attempt-{:032x}", self.next()))
    }

    /// Who this process is, for its claims: another one at every start.
    fn owner_id(&self, node: &str) -> OwnerId {
        OwnerId::new(format!("{node}-{:032x}", self.next()))
    }

    /// The id of a new operation.
    fn operation_id(&self) -> OperationId {
        OperationId::new(format!("op-{:032x}", self.next()))
    }
}

/// UUIDs of version 7.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn next(&self) -> u128 {
        Uuid::now_v7().as_u128()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    // conforms: A20
    #[test]
    fn every_start_of_a_node_is_another_owner() {
        let owners: BTreeSet<_> = (0..1_000).map(|_| RandomIds.owner_id("node-1")).collect();
        assert_eq!(owners.len(), 1_000);
    }

    #[test]
    fn ids_of_jobs_sort_by_creation() {
        let ids: Vec<_> = (0..1_000).map(|_| RandomIds.job_id()).collect();
        assert!(ids.is_sorted());
    }
}
