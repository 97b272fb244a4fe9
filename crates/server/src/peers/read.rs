//! `GET /peers` and `GET /peers/{id}`: who is registered in the circles that the caller sees, and who is there.
//!
//! An id names a peer within its circle. A caller that sees several circles says which one is meant where several have a peer with
//! the id; nobody else learns that another circle has one.

use std::borrow::Cow;

use api::{JsonObject, PeerAnswer, PeerList, Problem, ProblemCode};
use domain::peer::{Peer, PeerKey, Presence, is_fit_for_id};
use store::{Node, OfCircle, PeerQuery};

use super::meant::{candidates, with_id};
use super::presence::{neighbours, presence};
use crate::access::{Verdict, authorise};
use crate::clock_text::text;
use crate::problem::{at, no_such, of_store};
use crate::{Reply, RequestContext, Result, Server};

/// Between the id and the circle in a cursor: no id has it.
const CIRCLE_FOLLOWS: char = '/';

pub(crate) async fn list(server: &Server, asked: RequestContext) -> Result<Reply> {
    let parameter = |name| asked.parameter(name).map(Cow::into_owned);
    let limit = asked.limit()?;
    let after = parameter("cursor").map(cursor).transpose()?;
    let Some(circle) = authorise::circle_of_list(&asked.principal, parameter("circle")) else {
        return Ok(Reply::json(&PeerList { peers: Vec::new(), next_cursor: None }));
    };
    let circle = circle.map_or(OfCircle::Any, |circle| OfCircle::Only(Some(circle)));
    let query = PeerQuery {
        circle,
        id: None,
        display_name: parameter("display_name"),
        label: parameter("label"),
        path: parameter("path"),
        after,
        limit,
    };
    let of_one_circle = query.circle != OfCircle::Any;
    let page = server.store().peers(query).await.map_err(of_store)?;
    let next_cursor = page.next.map(|last| match last.circle.filter(|_| !of_one_circle) {
        Some(circle) => format!("{}{CIRCLE_FOLLOWS}{circle}", last.id),
        None => last.id,
    });
    let neighbours = neighbours(server, &page.peers).await?;
    let peers = page.peers.into_iter().map(|peer| shown(server, peer, &neighbours)).collect();
    Ok(Reply::json(&PeerList { peers, next_cursor }))
}

pub(crate) async fn read(server: &Server, asked: RequestContext) -> Result<Reply> {
    let peer = visible(server, &asked).await?;
    Ok(Reply::json(&PeerAnswer { peer: told(server, peer).await? }))
}

/// The peer that the path names, in the circle that the query names, if its caller sees it.
pub(super) async fn visible(server: &Server, asked: &RequestContext) -> Result<Peer> {
    let turned_away = |verdict| {
        server.audit.note(&asked.principal.actor, asked.operation.name, &asked.id, verdict);
        no_such("peer", &asked.id)
    };
    // An empty one is that of the peers without a circle.
    let named =
        asked.value("circle").map(|circle| Some(circle.into_owned()).filter(|circle| !circle.is_empty()));
    let mut found = match &named {
        None => with_id(server, &asked.principal, &asked.id).await?,
        Some(circle) if authorise::sees(&asked.principal, circle.as_deref()) => {
            let key = PeerKey::new(circle.as_deref(), &asked.id);
            let found = server.store().peer(&key).await.map_err(of_store)?;
            found.into_iter().collect()
        }
        Some(_) => Vec::new(),
    };
    match (found.pop(), found.is_empty()) {
        (Some(peer), true) => Ok(peer),
        (Some(last), false) => {
            found.push(last);
            Err(ambiguous(&asked.id, found))
        }
        (None, _) => {
            let query = PeerQuery { id: Some(asked.id.clone()), limit: 1, ..PeerQuery::default() };
            let elsewhere = server.store().peers(query).await.map_err(of_store)?.peers;
            let is_hidden = |peer: &Peer| !authorise::sees(&asked.principal, peer.circle.as_deref());
            let is_hidden = elsewhere.iter().any(is_hidden);
            Err(turned_away(if is_hidden { Verdict::NotVisible } else { Verdict::Absent }))
        }
    }
}

/// The refusal where several circles that the caller sees have a peer with the id.
fn ambiguous(id: &str, several: Vec<Peer>) -> Problem {
    let circles: Vec<&str> = several.iter().map(|peer| peer.circle.as_deref().unwrap_or_default()).collect();
    let told = format!(
        "several circles have a peer {id:?}: {circles:?}; name one of them as `?circle=` (empty for no circle)"
    );
    let code = ProblemCode::AmbiguousPeer;
    at(code, code.as_str(), &["query", "circle"], told).about_peer(id).between(candidates(several))
}

/// One peer as it is shown.
pub(super) async fn told(server: &Server, peer: Peer) -> Result<api::Peer> {
    let neighbours = neighbours(server, std::slice::from_ref(&peer)).await?;
    Ok(shown(server, peer, &neighbours))
}

/// The last peer of the page before. Where it may be of any circle, its circle follows its id.
fn cursor(text: String) -> Result<PeerKey> {
    let (id, circle) = text.split_once(CIRCLE_FOLLOWS).unwrap_or((&text, ""));
    let circle = Some(circle).filter(|circle| !circle.is_empty());
    if is_fit_for_id(id) { Ok(PeerKey::new(circle, id)) } else { Err(crate::cursor::invalid()) }
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
