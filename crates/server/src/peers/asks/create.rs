//! `POST /asks`: opens a thread and answers with its correlation id. It is on stable storage when this answers; nobody is waited for.
//!
//! Under an idempotency key the correlation id is made from the key: the same request finds the same ask, and is answered the same.

use api::{AskOpened, CreateAsk};
use domain::ask::{Ask, AskChange, Closing, DEFAULT_TTL_SECONDS, MAX_TTL_SECONDS, reply};
use domain::peer::PeerKey;
use domain::{Digest, JobId};
use store::sha256;

use super::{asked_peer, visible};
use crate::access::authorise;
use crate::clock_text::text;
use crate::jobs::visible_named;
use crate::peers::{ASKED, check_speaks_for, named};
use crate::problem::{at_field, key_reused, no_such_job, of_refusal, of_store};
use crate::reply::{Given, Reply, render};
use crate::{RequestContext, Result, Server};

pub(crate) async fn create(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: CreateAsk = asked.read()?;
    let request = sha256(asked.body.as_deref().unwrap_or_default().as_bytes());
    let id = correlation_id(server, &asked);
    if asked.key.is_some()
        && let Some(first) = server.store().ask(&id).await.map_err(of_store)?
    {
        return again(&first, request);
    }
    let (ask, replied) = draft(server, &asked, sent, id, request).await?;
    let kept = server.store().keep_ask(ask.clone(), replied.clone()).await;
    if !kept.map_err(of_store)? {
        // Under the same key at the same time, or by a transaction whose end nobody knew.
        let first = server.store().ask(&ask.id).await.map_err(of_store)?;
        return again(&first.unwrap_or(ask), request);
    }
    if let (Some(id), Some(closing)) = (ask.reply_to.clone(), replied) {
        server.daemon.asks().note(&AskChange::Closed { id, closing });
    }
    let bytes = opened(&ask);
    server.daemon.asks().note(&AskChange::Opened(Box::new(ask)));
    Ok(Reply::rendered(bytes, Given::Now))
}

/// What was answered to the same request.
fn again(first: &Ask, request: Digest) -> Result<Reply> {
    if first.request_sha256 != request {
        return Err(key_reused());
    }
    Ok(Reply::rendered(opened(first), Given::Before))
}

/// The answer: nothing in it ever changes.
fn opened(ask: &Ask) -> Vec<u8> {
    render(&AskOpened {
        correlation_id: ask.id.clone(),
        to_peer: ask.to_peer.clone(),
        expires_at: text(ask.expires_at),
    })
}

fn correlation_id(server: &Server, asked: &RequestContext) -> String {
    match &asked.key {
        None => format!("ask-{:032x}", server.daemon.engine().ids().next()),
        Some(key) => {
            let digest =
                sha256(format!("{}\0{}\0{key}", asked.principal.token_id, asked.operation.name).as_bytes());
            format!("ask-{}", &digest.to_string()[..32])
        }
    }
}

/// Checks what was sent, and puts the ask together with the end of the one that it replies to.
async fn draft(
    server: &Server,
    asked: &RequestContext,
    sent: CreateAsk,
    id: String,
    request_sha256: Digest,
) -> Result<(Ask, Option<Closing>)> {
    let (principal, now) = (&asked.principal, server.now());
    let ttl_seconds = sent.ttl_seconds.unwrap_or(DEFAULT_TTL_SECONDS);
    if !(1..=MAX_TTL_SECONDS).contains(&ttl_seconds) {
        let told = format!("ttl_seconds must be from 1 to {MAX_TTL_SECONDS}");
        return Err(at_field("ttl_seconds", "value_error", told));
    }
    if sent.text.is_empty() {
        return Err(at_field("text", "value_error", "text must not be empty"));
    }
    let circle = authorise::circle_of_new(principal, sent.circle)?;
    if let Some(from) = &sent.from_peer {
        check_speaks_for(server, principal, &PeerKey::new(circle.as_deref(), from)).await?;
    }
    let from_peer = sent.from_peer.or_else(|| principal.peer_id.clone());
    let to_peer = named(server, principal, &ASKED, &sent.to_peer, circle.as_deref()).await?;
    let job_id = match &sent.job_id {
        None => None,
        Some(job) => {
            let about = visible_named(server, asked, job).await.map_err(|_| no_such_job(job))?;
            Some(JobId::new(about.id().as_str()))
        }
    };
    let replied = match &sent.reply_to {
        None => None,
        Some(first) => {
            let first = visible(server, asked, first).await?;
            check_speaks_for(server, principal, &asked_peer(&first)).await?;
            Some(reply(&first, &sent.text, now))
        }
    };
    let ask = Ask {
        id,
        circle,
        from_peer,
        to_peer,
        text: sent.text,
        job_id,
        reply_to: sent.reply_to,
        asked_by: principal.token_id.to_string(),
        request_sha256,
        created_at: now,
        expires_at: now.plus_seconds(ttl_seconds),
        closed: None,
    };
    ask.check().map_err(|refusal| of_refusal(&refusal, ""))?;
    Ok((ask, replied))
}
