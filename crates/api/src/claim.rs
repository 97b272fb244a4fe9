//! Claims as a protocol (Azolla): leases on resources, by compare-and-swap. Unknown keys are refused.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Takes the oldest resource that can be had, or one by its id.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcquireClaim {
    /// `WORKORDER`, which is a job, or `EVENT`.
    pub resource_type: String,
    /// Which one; the oldest that nobody holds if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    /// Unique per process.
    pub owner_id: String,
    /// Of those in this lane; of those that name nobody if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Of an `EVENT`: only events of these types, the first named first; those that the operator leaves to claimants if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_types: Vec<String>,
    /// The circle; a token that is bound to one says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
    /// From 30 to 120; the host's own if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<u32>,
    /// How long to wait for one, in seconds: at most 60, not at all if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u64>,
}

/// What was taken, or nothing could be had.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClaimAnswer {
    /// The claim; `null` if there was nothing to take.
    pub claim: Option<ClaimRecord>,
}

/// Who holds a resource, until when, and the token that proves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimRecord {
    /// The kind of resource.
    pub resource_type: String,
    /// Which one.
    pub resource_id: String,
    /// Who holds it, or held it last.
    pub owner_id: String,
    /// The end of the lease; equality counts as ended.
    pub lease_expires_at: String,
    /// The last acquisition or renewal.
    pub heartbeat_at: String,
    /// Rises with each of them.
    pub claim_version: u64,
}

/// Renews or releases a claim, if it is still as its owner knows it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SwapClaim {
    /// Who holds it.
    pub owner_id: String,
    /// The version that its owner was given last.
    pub claim_version: u64,
    /// From 30 to 120; the host's own if left out. Only for a renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<u32>,
}

/// Ends what is claimed, under the claim.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettleClaim {
    /// Who holds it.
    pub owner_id: String,
    /// The version that its owner was given last.
    pub claim_version: u64,
    /// The terminal reason, such as `SCHEDULED`.
    pub reason: String,
    /// Of a `WORKORDER`: `completed` if left out, `failed` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Of an `EVENT`: the workorder that was made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_order_id: Option<String>,
}

/// The claim under which something is reported.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UnderClaim {
    /// Who holds it.
    pub owner_id: String,
    /// The version that its owner was given last.
    pub claim_version: u64,
}
