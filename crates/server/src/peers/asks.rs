//! `/asks`: what peers say to each other. An ask is a thread of its own: nothing here touches a job.
//!
//! Peers and agents see the asks that they are a party of; to others of their circle, and to every other circle, an ask is not there. An ask
//! about a job names it: whoever does not see the job sees the ask only as a party of it.

mod acknowledge;
mod create;
mod list;

pub(crate) use acknowledge::{ack, ack_named, wait};
pub(crate) use create::create;
pub(crate) use list::{list, pending, read};

use api::Role;
use domain::ask::Ask;
use domain::peer::PeerKey;
use domain::{RecordId, Timestamp};

use crate::access::{Principal, Verdict, authorise};
use crate::clock_text::text;
use crate::peers::check_speaks_for;
use crate::problem::{no_such, of_store};
use crate::{RequestContext, Result, Server};

/// The ask with this correlation id, if the caller sees it.
async fn visible(server: &Server, asked: &RequestContext, id: &str) -> Result<Ask> {
    let turned_away = |verdict| {
        server.audit.note(&asked.principal.actor, asked.operation.name, id, verdict);
        no_such("ask", id)
    };
    let found = server.store().ask(id).await.map_err(of_store)?;
    let Some(ask) = found else { return Err(turned_away(Verdict::Absent)) };
    if sees(server, &asked.principal, &ask).await? { Ok(ask) } else { Err(turned_away(Verdict::NotVisible)) }
}

/// Whether a caller sees an ask.
async fn sees(server: &Server, principal: &Principal, ask: &Ask) -> Result<bool> {
    if !authorise::sees(principal, ask.circle.as_deref()) {
        return Ok(false);
    }
    match principal.role {
        _ if is_asker(principal, ask) || is_asked(principal, ask) => Ok(true),
        Role::Admin | Role::Operator | Role::Viewer => sees_its_job(server, principal, ask).await,
        Role::Peer | Role::Agent => Ok(check_speaks_for(server, principal, &asked_peer(ask)).await.is_ok()
            || match &ask.from_peer {
                Some(from) => {
                    let key = PeerKey::new(ask.circle.as_deref(), from);
                    check_speaks_for(server, principal, &key).await.is_ok()
                }
                None => false,
            }),
    }
}

/// Whether a caller sees the job that an ask is about, if it is about one. Once the job is gone nobody knows whether it was private.
async fn sees_its_job(server: &Server, principal: &Principal, ask: &Ask) -> Result<bool> {
    let Some(job_id) = &ask.job_id else { return Ok(true) };
    let loaded = server.load(&RecordId::Job(job_id.clone())).await?;
    Ok(match loaded.as_ref().and_then(|loaded| loaded.record.as_job()) {
        Some(job) => authorise::sees_job(principal, job),
        None => authorise::sees_private(principal),
    })
}

/// The peer that is asked: one of the circle of the ask.
fn asked_peer(ask: &Ask) -> PeerKey {
    PeerKey::new(ask.circle.as_deref(), &ask.to_peer)
}

/// Whether the caller's token speaks for the peer that is asked.
fn is_asked(principal: &Principal, ask: &Ask) -> bool {
    principal.peer_id.as_ref() == Some(&ask.to_peer)
}

/// Whether the caller has asked it, by its token or as the peer that its token speaks for.
fn is_asker(principal: &Principal, ask: &Ask) -> bool {
    ask.asked_by == *principal.token_id || principal.peer_id.is_some() && principal.peer_id == ask.from_peer
}

fn shown(ask: Ask, now: Timestamp) -> api::Ask {
    let closing = ask.closing(now);
    let status = if closing.is_some() { "closed" } else { "open" };
    let closing = closing.as_ref();
    api::Ask {
        correlation_id: ask.id,
        circle: ask.circle,
        from_peer: ask.from_peer,
        to_peer: ask.to_peer,
        text: ask.text,
        job_id: ask.job_id.map(|id| id.as_str().to_owned()),
        reply_to: ask.reply_to,
        created_at: text(ask.created_at),
        expires_at: text(ask.expires_at),
        status: status.to_owned(),
        closed_at: closing.map(|closing| text(closing.at)),
        close_reason: closing.map(|closing| closing.reason.as_str().to_owned()),
        message: closing.and_then(|closing| closing.message.clone()),
        closed_by: closing.and_then(|closing| closing.by.clone()),
    }
}
