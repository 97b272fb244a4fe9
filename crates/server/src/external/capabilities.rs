//! `GET /v1/capabilities`: the executors that a caller may name. Nothing of how they work is shown: no program, no address, no secret.
//!
//! A caller of a circle sees the executors of this node that its jobs would find: its own, and those for everybody. Who sees every
//! circle sees all of them, each with its circle, and also what only other nodes have. Each is invoked by its name.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{Capability, CapabilityList, DeferredProfile};
use domain::policy::Hint;
use engine::Modes;

use crate::access::authorise::sees_every_circle;
use crate::daemon::nodes::{self, RUNNING};
use crate::external::{deferred, sensorium};
use crate::{Reply, RequestContext, Result, Server};

pub(crate) async fn list(server: &Server, asked: RequestContext) -> Result<Reply> {
    let all = sees_every_circle(&asked.principal);
    let executors = server.daemon.executors();
    let nodes = nodes::nodes(server).await?;
    // A node that nobody lists, as in a program that embeds it, takes work.
    let unlisted = !nodes.iter().any(|node| node.answering);
    let mut listed: BTreeMap<(&str, Option<&str>), Capability> = BTreeMap::new();
    for (name, executor) in executors.all() {
        if executor.specialist.left_out_because().is_some() {
            continue;
        }
        let found = executors.find(asked.principal.circle.as_deref(), name);
        let own = found.is_some_and(|found| found.circle == executor.circle);
        if all || own {
            let key = (name, executor.circle.as_deref());
            let available = unlisted && executor.specialist.missing_program().is_none();
            listed.insert(key, Capability { available, ..shown(key, Some(executor.modes)) });
        }
    }
    for node in &nodes {
        for published in &node.executors {
            let key = published.split_once('/').map_or((&**published, None), |(of, name)| (name, Some(of)));
            // It is published so that other nodes leave its jobs to wait, too.
            let own = executors.find_usable(key.1, key.0).filter(|_| node.answering);
            if node.answering && own.is_none() {
                continue;
            }
            if all {
                listed.entry(key).or_insert_with(|| shown(key, None));
            }
            if let Some(capability) = listed.get_mut(&key) {
                // A program may come later: it is looked for each time.
                let starts = own.is_none_or(|own| own.specialist.missing_program().is_none());
                capability.available |= node.state == RUNNING && starts;
            }
        }
    }
    Ok(Reply::json(&CapabilityList { capabilities: listed.into_values().collect() }))
}

fn shown((name, circle): (&str, Option<&str>), modes: Option<Modes>) -> Capability {
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
        circle: circle.map(str::to_owned),
        kind: deferred::kind_of(name),
        execution_mode_support: modes.map(|modes| modes.support.as_str().to_owned()),
        deferred_profile: profile.unwrap_or_default(),
        available: false,
    }
}

/// An executor is invoked, or what the host itself can.
pub(crate) async fn invoke(server: &Arc<Server>, asked: RequestContext) -> Result<Reply> {
    match sensorium::Name::parse(&asked.id) {
        Some(name) => Box::pin(sensorium::carry_out(server, name, asked)).await,
        None => Box::pin(deferred::invoke(server, asked)).await,
    }
}

pub(crate) async fn invoke_as_host(server: &Arc<Server>, asked: RequestContext) -> Result<Reply> {
    match sensorium::Name::parse(&asked.id) {
        Some(name) => {
            // A directive says its mode itself.
            deferred::host_mode(&asked)?;
            Box::pin(sensorium::carry_out(server, name, asked)).await
        }
        None => Box::pin(deferred::invoke_as_host(server, asked)).await,
    }
}
