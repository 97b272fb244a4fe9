//! `GET /peers` and `GET /peers/{id}`: who is registered in the circles that the caller sees, and who is there.

use std::borrow::Cow;

use api::{JsonObject, PeerAnswer, PeerList, Problem, ProblemCode};
use axum::response::Response;
use domain::peer::{Peer, Presence, is_fit_for_id};
use store::{Node, OfCircle, PeerQuery};

use super::presence::{neighbours, presence};
use crate::answer;
use crate::asked::Asked;
use crate::audit::Verdict;
use crate::authorise;
use crate::clock_text::text;
use crate::problem::of_store;
use crate::serve::Server;

/// The longest id that an answer repeats.
const MAX_ECHOED_ID: usize = 128;

pub(crate) async fn list(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let parameter = |name| asked.parameter(name).map(Cow::into_owned);
    let limit = asked.limit()?;
    let after = parameter("cursor").map(cursor).transpose()?;
    let Some(circle) = circle_of(&asked, parameter("circle")) else {
        return Ok(answer::json(&PeerList { peers: Vec::new(), next_cursor: None }));
    };
    let query = PeerQuery {
        circle,
        display_name: parameter("display_name"),
        label: parameter("label"),
        path: parameter("path"),
        after,
        limit,
    };
    let page = server.store().peers(query).await.map_err(|error| of_store(&error))?;
    let neighbours = neighbours(server, &page.peers).await?;
    let peers = page.peers.into_iter().map(|peer| shown(server, peer, &neighbours)).collect();
    Ok(answer::json(&PeerList { peers, next_cursor: page.next }))
}

pub(crate) async fn read(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let peer = visible(server, &asked).await?;
    Ok(answer::json(&PeerAnswer { peer: told(server, peer).await? }))
}

/// The peer that the path names, if its caller sees it.
pub(super) async fn visible(server: &Server, asked: &Asked) -> Result<Peer, Problem> {
    let turned_away = |verdict| {
        server.audit.note(&asked.principal.actor, asked.operation.name(), &asked.id, verdict);
        let echoed: String = asked.id.chars().take(MAX_ECHOED_ID).collect();
        ProblemCode::NotFound.because(format!("No peer: {echoed}"))
    };
    let found = server.store().peer(&asked.id).await.map_err(|error| of_store(&error))?;
    let Some(peer) = found else { return Err(turned_away(Verdict::Absent)) };
    if !authorise::sees(&asked.principal, peer.circle.as_deref()) {
        return Err(turned_away(Verdict::NotVisible));
    }
    Ok(peer)
}

/// One peer as it is shown.
pub(super) async fn told(server: &Server, peer: Peer) -> Result<api::Peer, Problem> {
    let neighbours = neighbours(server, std::slice::from_ref(&peer)).await?;
    Ok(shown(server, peer, &neighbours))
}

/// The circle that is asked for within what the caller sees; none if that is nothing.
fn circle_of(asked: &Asked, named: Option<String>) -> Option<OfCircle> {
    let circle = match (&asked.principal.circle, named) {
        (Some(own), Some(named)) if *own != named => return None,
        (Some(own), _) => Some(own.clone()),
        (None, named) => named,
    };
    let seen = authorise::sees(&asked.principal, circle.as_deref());
    seen.then(|| circle.map_or(OfCircle::Any, |circle| OfCircle::Only(Some(circle))))
}

fn cursor(text: String) -> Result<String, Problem> {
    if is_fit_for_id(&text) {
        return Ok(text);
    }
    Err(crate::cursor::invalid())
}

fn shown(server: &Server, peer: Peer, neighbours: &[Node]) -> api::Peer {
    let (presence, seen_at) = presence(server, &peer, neighbours);
    let presence = match presence {
        Presence::Present => "present",
        Presence::Absent => "absent",
    };
    let empty = || JsonObject::parse("{}").expect("an empty object is one");
    api::Peer {
        metadata: JsonObject::parse(peer.metadata.as_str()).unwrap_or_else(|_| empty()),
        peer_id: peer.id,
        display_name: peer.display_name,
        circle: peer.circle,
        labels: peer.labels,
        capabilities: peer.capabilities,
        path: peer.path,
        backend: peer.backend,
        presence: presence.to_owned(),
        seen_at: text(seen_at),
        registered_at: text(peer.registered_at),
    }
}
