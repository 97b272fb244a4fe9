//! `GET /plugin/{plugin}/state`: what a plugin remembers, for whoever operates it. A plugin that is left out remembers all the same.

use api::ductile::{PluginKept, PluginMemory};
use api::{JsonObject, Problem, ProblemCode};
use store::{KeptPluginFact, PluginState};

use super::plugin::plugin_named;
use crate::facts::number;
use crate::problem::of_store;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

/// Facts in one answer.
const PAGE: usize = 100;
const NOTHING: &str = "{}";

pub(crate) async fn read_memory(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let (after, store) = (number(&asked, "after")?, server.store());
    let found = store.plugin_state(&asked.id).await.map_err(|error| of_store(&error))?;
    let Some(found) = found else {
        let plugin = plugin_named(server, asked.principal.circle.as_deref(), &asked.id)
            .map_err(|told| ProblemCode::NotFound.because(told))?;
        return Ok(Reply::json(&PluginMemory {
            plugin: plugin.name.clone(),
            version: 0,
            state: object(NOTHING)?,
            fact_count: 0,
            facts: Vec::new(),
        }));
    };
    let PluginState { plugin, version, state, fact_count } = found;
    let after = after.unwrap_or(fact_count.saturating_sub(PAGE as u64));
    let kept = store.plugin_facts(&plugin, after, PAGE).await.map_err(|error| of_store(&error))?;
    let facts: Result<Vec<PluginKept>, Problem> = kept.into_iter().map(shown).collect();
    let (state, facts) = (object(&state)?, facts?);
    Ok(Reply::json(&PluginMemory { plugin, version, state, fact_count, facts }))
}

fn shown(KeptPluginFact { number, fact }: KeptPluginFact) -> Result<PluginKept, Problem> {
    Ok(PluginKept { number, fact_type: fact.fact_type, value: object(&fact.json)? })
}

/// What was written as an object.
fn object(text: &str) -> Result<JsonObject, Problem> {
    JsonObject::parse(text).map_err(|error| ProblemCode::Internal.because(error.to_string()))
}
