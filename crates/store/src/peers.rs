//! Peers: those who pull work, as they have registered. A plain table beside the records, not part of the ledger.
//!
//! The store keeps what it is given; who is meant by a name, and who may register it, is decided in `domain::peer`.

use domain::peer::{MAX_PEERS, Peer, Sighting};

use crate::error::too_large;
use crate::{Reply, StoreError};

/// Sightings that are written at once.
pub const MAX_SIGHTINGS: usize = 256;

/// Where peers are kept.
pub trait PeerStore {
    /// Keeps a registration. Its version is one more than that of the registration that is there, or it is a `Conflict`; `TooLarge`
    /// if there are too many.
    fn keep_peer(&self, peer: Peer) -> Reply<'_, ()>;
    /// The peer with this id.
    fn peer<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Peer>>;
    /// Peers that fit, by id, a page at a time. A page may be short; its `next` says whether it is the last.
    fn peers(&self, query: PeerQuery) -> Reply<'_, PeerPage>;
    /// Forgets a peer, if its registration is this one; false if it is not.
    fn forget_peer<'a>(&'a self, id: &'a str, version: u64) -> Reply<'a, bool>;
    /// Peers have come or gone, at most `MAX_SIGHTINGS`. Those that are not registered in that circle are passed over, and a node
    /// does not say that a peer has gone that another one hears of.
    fn note_sightings(&self, sightings: Vec<Sighting>) -> Reply<'_, ()>;
}

/// Which peers, from where on, how many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerQuery {
    /// Of which circle.
    pub circle: OfCircle,
    /// Called so.
    pub display_name: Option<String>,
    /// With this label.
    pub label: Option<String>,
    /// In this folder.
    pub path: Option<String>,
    /// After this id.
    pub after: Option<String>,
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
    pub next: Option<String>,
}

impl PeerQuery {
    /// Whether a peer is of the kind that is led to by an index: circle and name, or circle and folder.
    pub fn leads_to(&self, peer: &Peer) -> bool {
        let of_circle = match &self.circle {
            OfCircle::Any => true,
            OfCircle::Only(circle) => peer.circle == *circle,
        };
        let led_by_folder =
            self.circle != OfCircle::Any && self.display_name.is_none() && self.path.is_some();
        of_circle
            && self.display_name.as_ref().is_none_or(|name| peer.display_name == *name)
            && (!led_by_folder || peer.path == self.path)
    }

    /// The page from those that were looked at, in order.
    pub fn page(&self, looked_at: Vec<Peer>) -> PeerPage {
        let next =
            if looked_at.len() < self.limit { None } else { looked_at.last().map(|peer| peer.id.clone()) };
        let has_label =
            |peer: &Peer| self.label.as_ref().is_none_or(|label| peer.labels.iter().any(|own| own == label));
        let is_there = |peer: &Peer| self.path.is_none() || peer.path == self.path;
        let fits = |peer: &Peer| has_label(peer) && is_there(peer);
        PeerPage { peers: looked_at.into_iter().filter(fits).collect(), next }
    }
}

/// Refuses a peer over its limits, before anything is queued.
pub fn check_peer(peer: &Peer) -> Result<(), StoreError> {
    peer.check().map_err(|refusal| too_large(&refusal))
}

/// Refuses too many sightings at once.
pub fn check_sightings(sightings: &[Sighting]) -> Result<(), StoreError> {
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
