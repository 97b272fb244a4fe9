//! The orphan ledger on the wire: work that may still run outside although it is over here.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Work that may still run outside.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Orphan {
    /// The operation.
    pub operation_id: String,
    /// The job that it belonged to.
    pub job_id: String,
    /// The kind of work: the executor that it was asked of.
    pub kind: String,
    /// Who left it outside, as that executor names itself.
    pub service: String,
    /// `expired_while_live`, unknown, `cancel_unconfirmed`, `submit_outcome_unknown`, `specialist_unregistered` or `volatile_lost`; `null` once it is
    /// settled.
    pub reason: Option<String>,
    /// When it ended here.
    pub since: Option<String>,
    /// How long ago that was.
    pub age_seconds: u64,
    /// Whether the service's own name for the work is known: without it nobody can be asked to stop it.
    pub handle_known: bool,
    /// Whether its service can be asked to stop it.
    pub cancelable: bool,
    /// Why not.
    pub cancel_unavailable_reason: Option<String>,
    /// How often its service was asked to stop it, whoever wanted it.
    pub cancel_tries: u32,
    /// What it answered last.
    pub last_cancel_answer: Option<OrphanCancelAnswer>,
    /// When it is asked again.
    pub next_cancel_at: Option<String>,
    /// How often its service was asked about it since it ended here, or since it was last asked to stop it.
    pub polls_since: u32,
    /// Why the last of these questions was of no use: a code.
    pub last_poll_error: Option<String>,
    /// When its service is asked about it next; `null` if it is not asked any more.
    pub next_poll_at: Option<String>,
    /// `stopped` if its service has stopped it, `ended_outside` if its service says that it ended, `by_hand` if somebody has looked; `null`
    /// as long as nobody knows.
    pub settled: Option<String>,
    /// What whoever looked has found, or what its service says.
    pub settled_note: Option<String>,
}

/// What a service answered when it was asked to stop.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OrphanCancelAnswer {
    /// When.
    pub at: String,
    /// cancelled, accepted, refused or unreachable.
    pub answer: String,
    /// How it was told: the HTTP status, why there was no answer, or that nobody was asked.
    pub told: Option<String>,
}

/// A page of the orphan ledger, oldest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OrphanList {
    /// The orphans.
    pub orphans: Vec<Orphan>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
}

/// One orphan after an order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OrphanAnswer {
    /// It.
    pub orphan: Orphan,
}

/// Asks the service of an orphan to stop it, again.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryCancel {
    /// Why; `orphaned` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Vouches that nothing of an orphan runs outside any more.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettleOrphan {
    /// What was found.
    pub note: String,
}
