//! The one file that makes randomness: ids and jitter.

use domain::{AttemptId, Jitter, JobId, OperationId};
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
