//! `GET /v1/capabilities`: the executors that a caller may name. Nothing of how they work is shown: no program, no address, no secret.
//!
//! A caller of a circle sees the executors of this node that its jobs would find; who sees every circle also sees what only other
//! nodes have.

use std::collections::BTreeMap;

use api::{Capability, CapabilityList, DeferredProfile, Problem};
use axum::response::Response;
use domain::policy::Hint;
use engine::Modes;

use crate::answer;
use crate::asked::Asked;
use crate::deferred::kind_of;
use crate::nodes::{self, RUNNING};
use crate::serve::Server;

pub(crate) async fn list(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let circle = asked.principal.circle.as_deref();
    let executors = server.daemon.executors();
    let nodes = nodes::nodes(server).await?;
    // A node that nobody lists, as in a program that embeds it, takes work.
    let unlisted = !nodes.iter().any(|node| node.answering);
    let mut listed = BTreeMap::new();
    for name in executors.names() {
        if let Some(executor) = executors.find(circle, name) {
            let capability = Capability { available: unlisted, ..shown(name, Some(executor.modes)) };
            listed.insert(name.to_owned(), capability);
        }
    }
    for node in &nodes {
        for name in &node.executors {
            if circle.is_none() {
                listed.entry(name.clone()).or_insert_with(|| shown(name, None));
            }
            if let Some(capability) = listed.get_mut(name) {
                capability.available |= node.state == RUNNING;
            }
        }
    }
    Ok(answer::json(&CapabilityList { capabilities: listed.into_values().collect() }))
}

fn shown(name: &str, modes: Option<Modes>) -> Capability {
    let hinted = |hint: Hint| match hint {
        Hint::Seconds(seconds) => Some(seconds),
        Hint::Absent | Hint::Invalid => None,
    };
    let profile = modes.map(|modes| DeferredProfile {
        preferred_retry_after_seconds: hinted(modes.retry_after),
        preferred_max_ttl_seconds: hinted(modes.max_ttl),
    });
    Capability {
        name: name.to_owned(),
        kind: kind_of(name),
        execution_mode_support: modes.map(|modes| modes.support.as_str().to_owned()),
        deferred_profile: profile.unwrap_or_default(),
        available: false,
    }
}
