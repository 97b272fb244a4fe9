//! `POST /pipelines/reload`: the files of pipelines are read anew, on this node. What runs keeps the definition that it began with.
//!
//! While there are mistakes nothing is taken away: whether a pipeline that cannot be found was deleted or is only misspelt, nobody can tell.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{PipelinesReloaded, ProblemCode};
use domain::event::MAX_ROUTES;
use pipelines::{Loaded, Pipeline, Routes, Trigger};
use tokio::sync::Mutex;

use crate::{Reply, RequestContext, Result, Server};

/// How the files of pipelines are read; one at a time, so that the newest reading is the one that stays.
pub(crate) struct Reload {
    pub(crate) load: Arc<dyn Fn() -> Loaded + Send + Sync>,
    pub(crate) turn: Mutex<()>,
}

pub(crate) async fn reload(server: &Server, asked: RequestContext) -> Result<Reply> {
    let Some(reload) = &server.reload else {
        return Err(ProblemCode::Refused.because("the daemon was started without files of pipelines"));
    };
    let _turn = reload.turn.lock().await;
    let load = reload.load.clone();
    let loaded = tokio::task::spawn_blocking(move || load()).await;
    let Loaded { mut pipelines, mistakes } =
        loaded.map_err(|_| ProblemCode::Internal.because("the files could not be read to their end"))?;
    let router = &server.pipelines;
    let kept = if mistakes.is_empty() { Vec::new() } else { kept(&router.routes(), &pipelines) };
    let kept_names = kept.iter().map(|pipeline| pipeline.name.clone()).collect();
    pipelines.extend(kept);
    let routes = Routes::new(pipelines);
    let known: Vec<&str> = server.daemon.executors().names().collect();
    let doubts = routes.doubts(|executor| known.contains(&executor));
    let told = PipelinesReloaded {
        pipelines: routes.names().map(str::to_owned).collect(),
        kept: kept_names,
        mistakes: mistakes.iter().map(ToString::to_string).collect(),
        doubts: doubts.iter().map(ToString::to_string).collect(),
    };
    router.replace(routes);
    let (actor, count) = (&*asked.principal.actor, told.pipelines.len());
    tracing::info!(target: "audit", actor, count, mistakes = told.mistakes.len(), "pipelines read anew");
    Ok(Reply::json(&told))
}

/// The pipelines in use that are not among the new ones, as far as one trigger may have so many.
fn kept(before: &Routes, new: &[Pipeline]) -> Vec<Pipeline> {
    let mut started: BTreeMap<&Trigger, usize> = BTreeMap::new();
    for pipeline in new {
        *started.entry(&pipeline.trigger).or_default() += 1;
    }
    let gone = before.names().filter(|name| new.iter().all(|pipeline| pipeline.name != *name));
    let gone = gone.filter_map(|name| before.find(name));
    let fits = gone.filter(|pipeline| {
        let count = started.entry(&pipeline.trigger).or_default();
        *count += 1;
        *count <= MAX_ROUTES
    });
    fits.map(|pipeline| Pipeline::clone(pipeline)).collect()
}
