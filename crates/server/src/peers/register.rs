//! `POST /peers` and `DELETE /peers/{id}`: a peer registers, or says anew what it is, and is forgotten. To register is to be heard of.

use api::{JsonObject, PeerAnswer, PeerForgotten, ProblemCode, RegisterPeer, Role};
use domain::Json;
use domain::peer::{self, Peer, is_fit_for_id};
use store::StoreError;

use super::read::{told, visible};
use super::registrar;
use crate::access::authorise;
use crate::problem::{at_field, of_refusal, of_store};
use crate::{Reply, RequestContext, Result, Server};

/// How often a registration is decided anew because another was first.
const MAX_TRIES: usize = 8;
/// The longest part of a made-up id that is its circle's.
const MAX_CIRCLE_IN_ID: usize = 64;

pub(crate) async fn register(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: RegisterPeer = asked.read()?;
    let new = new_peer(server, &asked, sent)?;
    let (by, key) = (registrar(&asked.principal), new.key());
    for _ in 0..MAX_TRIES {
        let known = server.store().peer(&key).await.map_err(of_store)?;
        let registered = peer::register(known.as_ref(), new.clone(), by).map_err(|peer::IdTaken| {
            ProblemCode::PeerIdTaken.because("another token has registered this peer_id in this circle")
        })?;
        // Before it is written: what is written says that it is present, and here.
        server.daemon.presences().heard(registered.circle.as_deref(), &registered.id);
        match server.store().keep_peer(registered.clone()).await {
            Ok(()) => return Ok(Reply::json(&PeerAnswer { peer: told(server, registered).await? })),
            // Another registration was first, or this one was written by a transaction whose end nobody knew.
            Err(StoreError::Conflict) => {}
            Err(error) => return Err(of_store(error)),
        }
    }
    Err(ProblemCode::Busy.because("the registration kept changing; repeat the request"))
}

pub(crate) async fn forget(server: &Server, asked: RequestContext) -> Result<Reply> {
    let found = visible(server, &asked).await?;
    let steers = matches!(asked.principal.role, Role::Admin | Role::Operator);
    if !steers && !peer::is_keeper(&found, registrar(&asked.principal)) {
        return Err(ProblemCode::Forbidden.because("another token has registered this peer"));
    }
    let forgotten = server.store().forget_peer(&found.key(), found.version).await;
    if !forgotten.map_err(of_store)? {
        return Err(ProblemCode::Busy.because("the registration has just changed; repeat the request"));
    }
    tracing::info!(target: "audit", actor = &*asked.principal.actor, peer = found.id, "peer forgotten");
    Ok(Reply::json(&PeerForgotten { peer_id: found.id, forgotten: true }))
}

fn new_peer(server: &Server, asked: &RequestContext, sent: RegisterPeer) -> Result<Peer> {
    let principal = &asked.principal;
    let circle = authorise::circle_of_new(principal, sent.circle)?;
    let id = match (&principal.peer_id, sent.peer_id) {
        (Some(own), Some(named)) if *own != named => {
            return Err(ProblemCode::Forbidden.because("the token speaks for another peer"));
        }
        (Some(own), _) => own.clone(),
        (None, Some(named)) => named,
        (None, None) => made_up(server, circle.as_deref()),
    };
    let metadata = sent.metadata.as_ref().map_or("{}", JsonObject::as_str);
    let now = server.now();
    let peer = Peer {
        display_name: sent.display_name.unwrap_or_else(|| id.clone()),
        id,
        circle,
        labels: sent.labels,
        capabilities: sent.capabilities,
        path: sent.path,
        backend: sent.backend,
        metadata: Json::parse(metadata).map_err(|refusal| of_refusal(&refusal, ""))?,
        registered_by: principal.token_id.to_string(),
        registered_at: now,
        version: 0,
        present_on: Some(server.daemon.node_id().to_owned()),
        seen_at: now,
    };
    peer.check().map_err(|refusal| of_refusal(&refusal, ""))?;
    match peer.misworded() {
        None => Ok(peer),
        Some(field) => {
            let told = if field == "peer_id" {
                "an id has 1 to 128 letters, digits or any of - . _ : @".to_owned()
            } else {
                format!("{field} must be readable: not empty, and without control characters")
            };
            Err(at_field(field, "value_error", told))
        }
    }
}

/// An id for a peer that brings none.
fn made_up(server: &Server, circle: Option<&str>) -> String {
    let circle = circle.filter(|circle| is_fit_for_id(circle) && circle.len() <= MAX_CIRCLE_IN_ID);
    let random = server.daemon.engine().ids().next() & 0xffff_ffff_ffff_ffff;
    format!("peer-{}-{random:016x}", circle.unwrap_or("none"))
}
