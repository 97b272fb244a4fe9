//! `GET /asks`, `GET /asks/pending` and `GET /asks/{id}`: what a peer is asked and has asked, newest first, and what was said about a job.

use std::borrow::Cow;
use std::time::Duration;

use api::{AskAnswer, AskList, Problem, ProblemCode, Role};
use domain::JobId;
use domain::ask::{Ask, MAX_ASKS_LISTED};
use domain::peer::PeerKey;
use engine::AskTopic;
use store::{AskQuery, Direction};

use super::{sees, shown, visible};
use crate::access::{Principal, authorise};
use crate::jobs::visible_named;
use crate::peers::{check_speaks_for, waits};
use crate::problem::{at, of_store};
use crate::wait::{MAX_WAIT_SECONDS, Patience};
use crate::{Reply, RequestContext, Result, Server};

pub(crate) async fn read(server: &Server, asked: RequestContext) -> Result<Reply> {
    let ask = visible(server, &asked, &asked.id).await?;
    Ok(Reply::json(&AskAnswer { ask: shown(ask, server.now()) }))
}

/// The asks about a job, open or not.
pub(crate) async fn list(server: &Server, asked: RequestContext) -> Result<Reply> {
    let Some(job) = asked.parameter("job_id") else {
        return Err(invalid("job_id", "name the job whose asks are meant; see also /asks/pending"));
    };
    let visible = visible_named(server, &asked, &job).await?;
    let query = AskQuery::OfJob { job_id: JobId::new(visible.id().as_str()), limit: MAX_ASKS_LISTED };
    let found = server.store().asks(query).await.map_err(of_store)?;
    let mut asks = Vec::with_capacity(found.len());
    for ask in found {
        if sees(server, &asked.principal, &ask).await? {
            asks.push(shown(ask, server.now()));
        }
    }
    Ok(Reply::json(&AskList { asks }))
}

/// What a peer is asked, or has asked, and is still open. Whoever waits for it is there.
pub(crate) async fn pending(server: &Server, mut asked: RequestContext) -> Result<Reply> {
    let slot = asked.slot.take();
    let principal = &asked.principal;
    let named = asked.parameter("peer_id").map(Cow::into_owned).or_else(|| principal.peer_id.clone());
    let Some(peer) = named else {
        return Err(invalid("peer_id", "name the peer whose asks are meant"));
    };
    let directions: &[Direction] = match asked.parameter("direction").as_deref() {
        None | Some("inbound") => &[Direction::Inbound],
        Some("outbound") => &[Direction::Outbound],
        Some("both") => &[Direction::Inbound, Direction::Outbound],
        Some(_) => return Err(invalid("direction", "direction must be one of: inbound, outbound, both")),
    };
    let circle = authorise::circle_of_new(principal, asked.parameter("circle").map(Cow::into_owned))?;
    let is_doer = matches!(principal.role, Role::Peer | Role::Agent);
    if is_doer {
        check_speaks_for(server, principal, &PeerKey::new(circle.as_deref(), &peer)).await?;
    }
    let within = wait_of(&asked)?;
    let _heard =
        (is_doer || within.is_some()).then(|| waits(server, principal, circle.as_deref(), Some(&peer)));
    let mut watch = server.daemon.asks().watch(AskTopic::Peer { circle: circle.clone(), id: peer.clone() });
    let mut asks = open(server, principal, &peer, circle.as_deref(), directions).await?;
    if let (true, Some(within), Ok(_place)) = (asks.is_empty(), within, server.slots.wait()) {
        drop(slot);
        let mut patience = Patience::new(server, within);
        while asks.is_empty() && patience.wait_for(watch.changed()).await.is_some() {
            asks = open(server, principal, &peer, circle.as_deref(), directions).await?;
        }
        server.check_still_admits(principal).await?;
    }
    let now = server.now();
    Ok(Reply::json(&AskList { asks: asks.into_iter().map(|ask| shown(ask, now)).collect() }))
}

/// The open asks of a peer that the caller sees, newest first.
async fn open(
    server: &Server,
    principal: &Principal,
    peer: &str,
    circle: Option<&str>,
    directions: &[Direction],
) -> Result<Vec<Ask>> {
    let mut asks: Vec<Ask> = Vec::new();
    for direction in directions {
        let query = AskQuery::Open {
            peer: peer.to_owned(),
            circle: circle.map(str::to_owned),
            direction: *direction,
            now: server.now(),
            limit: MAX_ASKS_LISTED,
        };
        for ask in server.store().asks(query).await.map_err(of_store)? {
            if sees(server, principal, &ask).await? {
                asks.push(ask);
            }
        }
    }
    asks.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
    // What a peer asks itself goes both ways.
    asks.dedup_by(|a, b| a.id == b.id);
    asks.truncate(MAX_ASKS_LISTED);
    Ok(asks)
}

fn wait_of(asked: &RequestContext) -> Result<Option<Duration>> {
    let Some(text) = asked.value("wait_seconds") else { return Ok(None) };
    match text.parse::<u64>() {
        Ok(0) => Ok(None),
        Ok(seconds) => Ok(Some(Duration::from_secs(seconds.min(MAX_WAIT_SECONDS)))),
        Err(_) => Err(invalid("wait_seconds", "wait_seconds must be a number, at most 60")),
    }
}

fn invalid(field: &'static str, told: &str) -> Problem {
    at(ProblemCode::InvalidRequest, "value_error", &["query", field], told)
}
