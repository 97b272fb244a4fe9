//! The peers on a database: writes go through the writer, reads beside it.

use domain::peer::{Peer, Sighting};
use store::{PeerPage, PeerQuery, PeerStore, Reply, Urgency, check_peer, check_sightings};

use super::PostgresStore;
use crate::peers;
use crate::request::{Answer, PeerRequest, Request};

impl PeerStore for PostgresStore {
    fn keep_peer(&self, peer: Peer) -> Reply<'_, ()> {
        let request = check_peer(&peer).map(|()| Request::Peer(PeerRequest::Keep(Box::new(peer))));
        self.write(request, Urgency::Result, Answer::done)
    }

    fn peer<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Peer>> {
        Box::pin(self.pool.read(move |session| async move { peers::peer(&*session, id).await }))
    }

    fn peers(&self, query: PeerQuery) -> Reply<'_, PeerPage> {
        let query = std::sync::Arc::new(query);
        Box::pin(self.pool.read(move |session| {
            let query = query.clone();
            async move { peers::peers(&*session, &query).await }
        }))
    }

    fn forget_peer<'a>(&'a self, id: &'a str, version: u64) -> Reply<'a, bool> {
        let request = Request::Peer(PeerRequest::Forget { id: id.to_owned(), version });
        self.write(Ok(request), Urgency::Result, Answer::known)
    }

    fn note_sightings(&self, sightings: Vec<Sighting>) -> Reply<'_, ()> {
        let request = check_sightings(&sightings).map(|()| Request::Peer(PeerRequest::Sight(sightings)));
        self.write(request, Urgency::Result, Answer::done)
    }
}
