//! `/nodes`: who works on this store, and the order to take no more work.
//!
//! A row proves nothing: a silent node may live, and one that was heard of may have died since. Claims alone decide who does what.

use api::{NodeAnswer, NodeList, ProblemCode};
use domain::Timestamp;
use engine::clock_steps;
use store::{Node, Taking};

use crate::clock_text::text;
use crate::problem::of_store;
use crate::{Reply, RequestContext, Result, Server};

/// The state of a node that takes work.
pub(crate) const RUNNING: &str = "running";

pub(crate) async fn list(server: &Server) -> Result<Reply> {
    Ok(Reply::json(&NodeList { nodes: nodes(server).await? }))
}

/// Tells a node to take work or not: at once if it is this one, otherwise as soon as it looks.
pub(crate) async fn tell(server: &Server, asked: RequestContext, taking: Taking) -> Result<Reply> {
    let unknown = || ProblemCode::NotFound.because(format!("No node: {}", asked.id));
    let known = server.store().tell_node(&asked.id, taking).await.map_err(of_store)?;
    if !known {
        return Err(unknown());
    }
    if asked.id == server.daemon.node_id() {
        server.daemon.tell(taking);
    }
    tracing::info!(target: "audit", actor = &*asked.principal.actor, node = asked.id, ?taking, "node told");
    let node = nodes(server).await?.into_iter().find(|node| node.id == asked.id);
    Ok(Reply::json(&NodeAnswer { node: node.ok_or_else(unknown)? }))
}

/// Everyone who was heard of.
pub(crate) async fn nodes(server: &Server) -> Result<Vec<api::Node>> {
    let now = server.now();
    let nodes = server.store().nodes().await.map_err(of_store)?;
    let steps = clock_steps(server.store()).await.map_err(of_store)?;
    let shown = |node: Node| {
        let step_seconds = steps.get(&node.id).copied().unwrap_or_default();
        shown(server, node, now, step_seconds)
    };
    Ok(nodes.into_iter().map(shown).collect())
}

fn shown(server: &Server, mut node: Node, now: Timestamp, mut step_seconds: i64) -> api::Node {
    let answering = node.id == server.daemon.node_id();
    if answering {
        // It knows itself better than its last heartbeat does.
        step_seconds = server.daemon.engine().clock().status().step_seconds();
        node.heartbeat_at = now;
        node.attempts = server.daemon.attempts().count() as u64;
        node.polls = server.daemon.polls().count() as u64;
    }
    let state = match (node.is_silent(now), node.taking) {
        (true, _) => "silent",
        (false, Taking::Drains) => "draining",
        (false, Taking::Takes) => RUNNING,
    };
    api::Node {
        id: node.id,
        name: node.name,
        url: node.url,
        version: node.version,
        schema_version: node.schema_version,
        executors: node.executors,
        state: state.to_owned(),
        started_at: text(node.started_at),
        heartbeat_at: text(node.heartbeat_at),
        attempts: node.attempts,
        polls: node.polls,
        clock_step_seconds: step_seconds,
        answering,
    }
}
