//! Peers: those who pull work, as they have registered. A plain table beside the records, not part of the ledger.
//!
//! The store keeps what it is given; who is meant by a name, and who may register it, is decided in `domain::peer`.

use domain::peer::{MAX_PEERS, Peer, PeerKey, Sighting};

use crate::StoreError;
use crate::error::too_large;

/// Sightings that are written at once.
pub const MAX_SIGHTINGS: usize = 256;

/// Which peers, from where on, how many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerQuery {
    /// Of which circle.
    pub circle: OfCircle,
    /// With this id.
    pub id: Option<String>,
    /// Called so.
    pub display_name: Option<String>,
    /// With this label.
    pub label: Option<String>,
    /// In this folder.
    pub path: Option<String>,
    /// After this one. Within one circle its id alone counts.
    pub after: Option<PeerKey>,
    /// How many are looked at, whether they fit or not.
    pub limit: usize,
}

/// Of which circle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OfCircle {
    /// Of any, or none.
    #[default]
    Any,
    /// Of this one; of none if none is named.
    Only(Option<String>),
}

/// A page of peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerPage {
    /// Those that fit.
    pub peers: Vec<Peer>,
    /// Go on after this one; none if it was the last page.
    pub next: Option<PeerKey>,
}

impl PeerQuery {
    /// Whether a peer is of the kind that is led to by an index: id, circle and name, or circle and folder.
    pub fn leads_to(&self, peer: &Peer) -> bool {
        if let Some(id) = &self.id {
            return peer.id == *id;
        }
        let led_by_folder =
            self.circle != OfCircle::Any && self.display_name.is_none() && self.path.is_some();
        self.is_of_circle_and_name(peer) && (!led_by_folder || peer.path == self.path)
    }

    /// Whether a peer comes after the last page.
    pub fn is_after(&self, peer: &Peer) -> bool {
        match (&self.after, &self.circle) {
            (None, _) => true,
            (Some(after), OfCircle::Only(_)) if self.id.is_none() => peer.id > after.id,
            (Some(after), OfCircle::Any | OfCircle::Only(_)) => peer.key() > *after,
        }
    }

    /// The page from those that were looked at, in order.
    pub fn page(&self, looked_at: Vec<Peer>) -> PeerPage {
        let next = if looked_at.len() < self.limit { None } else { looked_at.last().map(Peer::key) };
        let has_label =
            |peer: &Peer| self.label.as_ref().is_none_or(|label| peer.labels.iter().any(|own| own == label));
        let is_there = |peer: &Peer| self.path.is_none() || peer.path == self.path;
        let fits = |peer: &Peer| self.is_of_circle_and_name(peer) && has_label(peer) && is_there(peer);
        PeerPage { peers: looked_at.into_iter().filter(fits).collect(), next }
    }

    fn is_of_circle_and_name(&self, peer: &Peer) -> bool {
        let of_circle = match &self.circle {
            OfCircle::Any => true,
            OfCircle::Only(circle) => peer.circle == *circle,
        };
        of_circle && self.display_name.as_ref().is_none_or(|name| peer.display_name == *name)
    }
}

/// Refuses a peer over its limits, before anything is queued.
pub(crate) fn check_peer(peer: &Peer) -> Result<(), StoreError> {
    peer.check().map_err(|refusal| too_large(&refusal))
}

/// Refuses too many sightings at once.
pub(crate) fn check_sightings(sightings: &[Sighting]) -> Result<(), StoreError> {
    if sightings.len() > MAX_SIGHTINGS {
        return Err(StoreError::TooLarge { what: "sightings at once", limit: MAX_SIGHTINGS });
    }
    Ok(())
}

/// Labels or capabilities as JSON.
pub fn encode_words(words: &[String]) -> String {
    serde_json::to_string(words).expect("a list of texts is JSON")
}

/// Labels or capabilities from their JSON.
pub fn decode_words(words: &str) -> Result<Vec<String>, serde_json::Error> {
    serde_json::from_str(words)
}

/// The refusal when there are too many.
pub const fn too_many_peers() -> StoreError {
    StoreError::TooLarge { what: "registered peers", limit: MAX_PEERS }
}
