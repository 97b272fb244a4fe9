//! Access tokens. The secret is shown once, in the answer to its creation.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything, tokens too.
    Admin,
    /// Everything but tokens.
    Operator,
    /// Does work: its own and its circle's unassigned jobs.
    Peer,
    /// Like a peer.
    Agent,
    /// Only reads.
    Viewer,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] = [Self::Admin, Self::Operator, Self::Peer, Self::Agent, Self::Viewer];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Peer => "peer",
            Self::Agent => "agent",
            Self::Viewer => "viewer",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// Asks for a new token.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// For people.
    #[serde(default)]
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// What it may do besides: `exec` lets it run commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The only circle that it sees. Peers and agents must have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
    /// The peer that it speaks for, in its circle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_id: Option<String>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its id: `token-` and hex.
    pub id: String,
    /// For people.
    pub name: String,
    /// What it may do.
    pub role: String,
    /// What it may do besides.
    pub scopes: Vec<String>,
    /// The only circle that it sees.
    pub circle: Option<String>,
    /// The peer that it speaks for, in its circle.
    pub peer_id: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// When it was revoked.
    pub revoked_at: Option<String>,
}

/// A new token, with its secret: it is not shown again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenCreated {
    /// The token.
    pub token: Token,
    /// What its holder sends after `Authorization: Bearer`.
    pub secret: String,
}

/// All tokens.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// The tokens, oldest first.
    pub tokens: Vec<Token>,
}

/// A token was revoked.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenRevoked {
    /// Which.
    pub id: String,
    /// `true`.
    pub revoked: bool,
}
