//! `POST /asks/{id}/ack` and `/wait`: whoever was asked confirms that it was received, and whoever asked waits for that.

use std::time::Duration;

use api::{AckAsk, AckNamed, AskAnswer, AskWaited, ProblemCode, WaitAsk};
use domain::ask::{Ask, AskChange, AskClosed, acknowledge};
use domain::peer::PeerKey;
use engine::AskTopic;

use super::{asked_peer, is_asker, shown, visible};
use crate::peers::check_speaks_for;
use crate::problem::{of_refusal, of_store};
use crate::wait::Patience;
use crate::{Reply, RequestContext, Result, Server};

/// How long whoever asked waits if it does not say.
const DEFAULT_WAIT_SECONDS: u64 = 45;
/// The longest wait.
const MAX_WAIT_SECONDS: u64 = 50;

/// Received. No job is touched, whatever the ask is about.
pub(crate) async fn ack(server: &Server, asked: RequestContext) -> Result<Reply> {
    let AckAsk { message } = asked.read_or_default()?;
    acknowledged(server, &asked, message).await
}

/// The same, for clients that name the ask in the body.
pub(crate) async fn ack_named(server: &Server, mut asked: RequestContext) -> Result<Reply> {
    let AckNamed { correlation_id, message } = asked.read()?;
    asked.id = correlation_id;
    acknowledged(server, &asked, message).await
}

async fn acknowledged(server: &Server, asked: &RequestContext, message: Option<String>) -> Result<Reply> {
    let ask = visible(server, asked, &asked.id).await?;
    check_speaks_for(server, &asked.principal, &asked_peer(&ask)).await?;
    let by = asked.principal.peer_id.as_deref().unwrap_or(&ask.to_peer);
    let decided = acknowledge(&ask, message, Some(by), server.now());
    let closed = |AskClosed(closing)| {
        let reason = closing.reason.as_str();
        ProblemCode::AskClosed.because(format!("it is closed ({reason}): a message would reach nobody"))
    };
    let Some(closing) = decided.map_err(closed)? else {
        return Ok(Reply::json(&AskAnswer { ask: shown(ask, server.now()) }));
    };
    closing.check().map_err(|refusal| of_refusal(&refusal, ""))?;
    let is_first = server.store().close_ask(&ask.id, closing.clone()).await.map_err(of_store)?;
    let now_closed = visible(server, asked, &asked.id).await?;
    if !is_first && closing.message.is_some() && now_closed.closed.as_ref() != Some(&closing) {
        return Err(ProblemCode::AskClosed.because("it was closed just now: a message would reach nobody"));
    }
    server.daemon.asks().note(&AskChange::Closed { id: ask.id, closing });
    Ok(Reply::json(&AskAnswer { ask: shown(now_closed, server.now()) }))
}

/// Waits for the end of an ask of one's own.
pub(crate) async fn wait(server: &Server, mut asked: RequestContext) -> Result<Reply> {
    let slot = asked.slot.take();
    let sent: WaitAsk = asked.read_or_default()?;
    let mut watch = server.daemon.asks().watch(AskTopic::Ask(asked.id.clone()));
    let mut ask = visible(server, &asked, &asked.id).await?;
    let claims_it = sent.peer_id.is_some() && sent.peer_id == ask.from_peer;
    if let (true, Some(peer)) = (claims_it, &sent.peer_id) {
        let key = PeerKey::new(ask.circle.as_deref(), peer);
        check_speaks_for(server, &asked.principal, &key).await?;
    } else if !is_asker(&asked.principal, &ask) {
        return Err(ProblemCode::Forbidden.because("only whoever asked waits for the answer"));
    }
    let seconds = sent.timeout_seconds.unwrap_or(DEFAULT_WAIT_SECONDS).min(MAX_WAIT_SECONDS);
    // Its own end wakes nobody.
    let left = ask.expires_at.seconds_since(server.now()).saturating_add(1);
    let mut patience = Patience::new(server, Duration::from_secs(seconds.min(left)));
    let _place = server.slots.wait()?;
    drop(slot);
    while seconds > 0 && ask.closing(server.now()).is_none() {
        if patience.wait_for(watch.changed()).await.is_none() {
            break;
        }
        ask = visible(server, &asked, &asked.id).await?;
    }
    server.check_still_admits(&asked.principal).await?;
    Ok(Reply::json(&waited(ask, server.now())))
}

fn waited(ask: Ask, now: domain::Timestamp) -> AskWaited {
    let closing = ask.closing(now);
    AskWaited {
        status: if closing.is_some() { "resolved" } else { "pending" }.to_owned(),
        correlation_id: ask.id,
        close_reason: closing.as_ref().map(|closing| closing.reason.as_str().to_owned()),
        responder: closing.as_ref().and_then(|closing| closing.by.clone()),
        reply: closing.and_then(|closing| closing.message),
    }
}
