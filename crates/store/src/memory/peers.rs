//! The peers of the model.

use domain::peer::{MAX_PEERS, Peer, PeerKey, Presence, Sighting};

use super::Tables;
use crate::peers::too_many_peers;
use crate::{PeerPage, PeerQuery, StoreError};

impl Tables {
    pub(super) fn peers(&self, query: &PeerQuery) -> PeerPage {
        let led_to = self.peers.values().filter(|peer| query.leads_to(peer) && query.is_after(peer));
        let looked_at = led_to.take(query.limit).cloned().collect();
        query.page(looked_at)
    }

    pub(super) fn forget_peer(&mut self, key: &PeerKey, version: u64) -> bool {
        let is_there = self.peers.get(key).is_some_and(|peer| peer.version == version);
        if is_there {
            self.peers.remove(key);
        }
        is_there
    }

    pub(super) fn keep_peer(&mut self, peer: Peer) -> Result<(), StoreError> {
        let key = peer.key();
        let known = self.peers.get(&key).map_or(0, |known| known.version);
        if known + 1 != peer.version {
            return Err(StoreError::Conflict);
        }
        if known == 0 && self.peers.len() >= MAX_PEERS {
            return Err(too_many_peers());
        }
        self.peers.insert(key, peer);
        Ok(())
    }

    pub(super) fn note_sightings(&mut self, sightings: Vec<Sighting>) {
        for sighting in sightings {
            let key = PeerKey { id: sighting.id, circle: sighting.circle };
            let Some(peer) = self.peers.get_mut(&key) else { continue };
            match sighting.presence {
                Presence::Present => peer.present_on = Some(sighting.node),
                Presence::Absent if peer.present_on.as_ref() == Some(&sighting.node) => {
                    peer.present_on = None;
                }
                Presence::Absent => continue,
            }
            peer.seen_at = sighting.seen_at;
        }
    }
}
