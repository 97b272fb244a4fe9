//! The peers of the model.

use domain::peer::{MAX_PEERS, Peer, Presence, Sighting};

use super::{MemoryStore, Tables, ready};
use crate::peers::{check_peer, check_sightings, too_many_peers};
use crate::{PeerPage, PeerQuery, PeerStore, Reply, StoreError};

impl PeerStore for MemoryStore {
    fn keep_peer(&self, peer: Peer) -> Reply<'_, ()> {
        ready(check_peer(&peer).and_then(|()| self.tables().keep_peer(peer)))
    }

    fn peer<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Peer>> {
        ready(Ok(self.tables().peers.get(id).cloned()))
    }

    fn peers(&self, query: PeerQuery) -> Reply<'_, PeerPage> {
        let tables = self.tables();
        let after = |peer: &&Peer| query.after.as_ref().is_none_or(|after| peer.id > *after);
        let led_to = tables.peers.values().filter(|peer| query.leads_to(peer)).filter(after);
        let looked_at = led_to.take(query.limit).cloned().collect();
        ready(Ok(query.page(looked_at)))
    }

    fn forget_peer<'a>(&'a self, id: &'a str, version: u64) -> Reply<'a, bool> {
        let mut tables = self.tables();
        let is_there = tables.peers.get(id).is_some_and(|peer| peer.version == version);
        if is_there {
            tables.peers.remove(id);
        }
        ready(Ok(is_there))
    }

    fn note_sightings(&self, sightings: Vec<Sighting>) -> Reply<'_, ()> {
        ready(check_sightings(&sightings).map(|()| self.tables().note_sightings(sightings)))
    }
}

impl Tables {
    fn keep_peer(&mut self, peer: Peer) -> Result<(), StoreError> {
        let known = self.peers.get(&peer.id).map_or(0, |known| known.version);
        if known + 1 != peer.version {
            return Err(StoreError::Conflict);
        }
        if known == 0 && self.peers.len() >= MAX_PEERS {
            return Err(too_many_peers());
        }
        self.peers.insert(peer.id.clone(), peer);
        Ok(())
    }

    fn note_sightings(&mut self, sightings: Vec<Sighting>) {
        for sighting in sightings {
            let Some(peer) = self.peers.get_mut(&sighting.id) else { continue };
            if peer.circle != sighting.circle {
                continue;
            }
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
