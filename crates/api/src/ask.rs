//! Asks: what one peer says to another, and whether it was received. Unknown keys are refused.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Says something to a peer. It is on stable storage when this is answered; nobody is waited for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAsk {
    /// Who is asked: an id, or a name that only one peer of the circle has.
    pub to_peer: String,
    /// Who asks; the peer that the token speaks for if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_peer: Option<String>,
    /// What, at most 16 KiB.
    pub text: String,
    /// The circle; a token that is bound to one says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
    /// The job that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The ask that it replies to, which is closed by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// How long it stays open: a day if left out, at most a week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
}

/// The ask is open.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AskOpened {
    /// What it is known by: `ask-` and hex.
    pub correlation_id: String,
    /// Who is asked, by id.
    pub to_peer: String,
    /// When it is closed by itself.
    pub expires_at: String,
}

/// An ask, and whether it was received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ask {
    /// What it is known by.
    pub correlation_id: String,
    /// The circle that it is said in.
    pub circle: Option<String>,
    /// Who asks; `null` if it is no peer.
    pub from_peer: Option<String>,
    /// Who is asked.
    pub to_peer: String,
    /// What.
    pub text: String,
    /// The job that it is about.
    pub job_id: Option<String>,
    /// The ask that it replies to.
    pub reply_to: Option<String>,
    /// When it was asked.
    pub created_at: String,
    /// When it is closed by itself.
    pub expires_at: String,
    /// `open` or `closed`.
    pub status: String,
    /// When it was closed.
    pub closed_at: Option<String>,
    /// ack, `ack_with_msg`, `reply_to`, `fire_completed` or expired.
    pub close_reason: Option<String>,
    /// What was answered.
    pub message: Option<String>,
    /// Who closed it.
    pub closed_by: Option<String>,
}

/// One ask.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AskAnswer {
    /// The ask.
    pub ask: Ask,
}

/// Asks, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AskList {
    /// The asks.
    pub asks: Vec<Ask>,
}

/// An ask was received. It says nothing about any job.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AckAsk {
    /// What is answered, at most 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Confirms that an ask was received, which is named in the body.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AckNamed {
    /// The ask.
    pub correlation_id: String,
    /// What is answered, at most 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Waits until an ask of one's own is closed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitAsk {
    /// At most 50, 45 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Who waits, if the token speaks for no peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_id: Option<String>,
}

/// What has become of an ask.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AskWaited {
    /// `resolved` or `pending`.
    pub status: String,
    /// Which ask.
    pub correlation_id: String,
    /// What was answered.
    pub reply: Option<String>,
    /// Why it was closed.
    pub close_reason: Option<String>,
    /// Who closed it.
    pub responder: Option<String>,
}
