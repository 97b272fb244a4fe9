//! `GET /plugin/{plugin}/state`: what a plugin remembers, for whoever operates it. A plugin that is left out remembers all the same.

use api::ductile::{PluginKept, PluginMemory};
use api::{JsonObject, ProblemCode};
use store::{KeptPluginFact, PluginState};

use super::plugin::plugin_in_path;
use crate::facts::number;
use crate::problem::of_store;
use crate::{Reply, RequestContext, Result, Server};

/// Facts in one answer.
const PAGE: usize = 100;

pub(crate) async fn read_memory(server: &Server, asked: RequestContext) -> Result<Reply> {
    let (after, store) = (number(&asked, "after")?, server.store());
    let found = store.plugin_state(&asked.id).await.map_err(of_store)?;
    let Some(found) = found else {
        let plugin = plugin_in_path(server, &asked)?.name.clone();
        let (state, facts) = (object("{}")?, Vec::new());
        return Ok(Reply::json(&PluginMemory { plugin, version: 0, state, fact_count: 0, facts }));
    };
    let PluginState { plugin, version, state, fact_count } = found;
    let after = after.unwrap_or(fact_count.saturating_sub(PAGE as u64));
    let kept = store.plugin_facts(&plugin, after, PAGE).await.map_err(of_store)?;
    let facts: Result<Vec<PluginKept>> = kept.into_iter().map(shown).collect();
    Ok(Reply::json(&PluginMemory { plugin, version, state: object(&state)?, fact_count, facts: facts? }))
}

fn shown(KeptPluginFact { number, fact }: KeptPluginFact) -> Result<PluginKept> {
    Ok(PluginKept { number, fact_type: fact.fact_type, value: object(&fact.json)? })
}

/// What was written as an object.
fn object(text: &str) -> Result<JsonObject> {
    JsonObject::parse(text).map_err(|error| ProblemCode::Internal.because(error.to_string()))
}
