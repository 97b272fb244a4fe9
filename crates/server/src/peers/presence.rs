//! Whether a peer is there: what this node hears itself, and what the rows say of other nodes that live.

use api::Role;
use domain::Timestamp;
use domain::job::{Job, JobSpec, PeerHere, Pull};
use domain::peer::{Peer, PeerKey, Presence};
use engine::Waits;
use store::{Node, OfCircle, PeerQuery};

use crate::access::{Principal, authorise};
use crate::problem::of_store;
use crate::{Result, Server};

/// Peers that are looked at together.
const MAX_PAGE: usize = 100;

/// A peer that waits for something is there as long as it does.
pub(crate) fn waits(
    server: &Server,
    principal: &Principal,
    circle: Option<&str>,
    peer: Option<&str>,
) -> Option<Waits> {
    // Whoever only looks on speaks for nobody.
    let speaks = matches!(principal.role, Role::Admin | Role::Operator | Role::Peer | Role::Agent);
    let id = peer.or(principal.peer_id.as_deref()).filter(|_| speaks)?;
    let circle = principal.circle.as_deref().or(circle);
    authorise::sees(principal, circle).then(|| server.daemon.presences().waits(circle, id))?
}

/// The nodes whose word on these peers counts; nobody is asked if only this one has heard of them.
pub(super) async fn neighbours(server: &Server, peers: &[Peer]) -> Result<Vec<Node>> {
    let own = server.daemon.node_id();
    if peers.iter().all(|peer| peer.present_on.as_deref().is_none_or(|node| node == own)) {
        return Ok(Vec::new());
    }
    let (mut nodes, now) = (server.store().nodes().await.map_err(of_store)?, server.now());
    nodes.retain(|node| !node.is_silent(now));
    Ok(nodes)
}

/// Whether it is there, and when it was heard of.
pub(super) fn presence(server: &Server, peer: &Peer, neighbours: &[Node]) -> (Presence, Timestamp) {
    if let Some(seen_at) = server.daemon.presences().seen_at(peer.circle.as_deref(), &peer.id) {
        return (Presence::Present, seen_at.max(peer.seen_at));
    }
    let own = server.daemon.node_id();
    let is_alive = |node: &str| node != own && neighbours.iter().any(|other| other.id == node);
    (peer.presence(is_alive), peer.seen_at)
}

/// Whether a peer that is there works in the folder of such a job, in its circle and on this backend.
pub(crate) async fn works_there(server: &Server, spec: &JobSpec, backend: &str) -> Result<bool> {
    let mut query = PeerQuery {
        circle: OfCircle::Only(spec.circle.clone()),
        path: spec.path.clone(),
        limit: MAX_PAGE,
        ..PeerQuery::default()
    };
    loop {
        let page = server.store().peers(query.clone()).await.map_err(of_store)?;
        let of_backend = |peer: &Peer| peer.backend.as_deref() == Some(backend);
        let peers: Vec<Peer> = page.peers.into_iter().filter(of_backend).collect();
        let neighbours = neighbours(server, &peers).await?;
        let is_present = |peer: &Peer| presence(server, peer, &neighbours).0 == Presence::Present;
        if peers.iter().any(is_present) {
            return Ok(true);
        }
        match page.next {
            Some(_) => query.after = page.next,
            None => return Ok(false),
        }
    }
}

/// What is known of the peer that a job is assigned to.
pub(crate) async fn here(server: &Server, job: &Job) -> Result<PeerHere> {
    let (None, Pull::Assigned(id)) = (&job.spec.executor, job.spec.pull()) else {
        return Ok(PeerHere::NoneAssigned);
    };
    let key = PeerKey::new(job.spec.circle.as_deref(), id);
    let Some(peer) = server.store().peer(&key).await.map_err(of_store)? else {
        let heard = server.daemon.presences().seen_at(job.spec.circle.as_deref(), id);
        return Ok(heard.map_or(PeerHere::Unknown, |_| PeerHere::Present));
    };
    let neighbours = neighbours(server, std::slice::from_ref(&peer)).await?;
    Ok(match presence(server, &peer, &neighbours) {
        (Presence::Present, _) => PeerHere::Present,
        (Presence::Absent, seen_at) => PeerHere::Absent { seen_at },
    })
}

/// Whether any registered peer of a circle is there, on any node.
pub(crate) async fn anyone_here(server: &Server, circle: Option<&str>) -> Result<bool> {
    let of = OfCircle::Only(circle.map(str::to_owned));
    let query = PeerQuery { circle: of, limit: MAX_PAGE, ..PeerQuery::default() };
    let page = server.store().peers(query).await.map_err(of_store)?;
    let neighbours = neighbours(server, &page.peers).await?;
    Ok(page.peers.iter().any(|peer| presence(server, peer, &neighbours).0 == Presence::Present))
}
