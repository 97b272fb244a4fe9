//! `/pipelines`: what follows which event here; started by name, and read anew from their files.

mod reload;
mod start;

use std::sync::Arc;

use api::{PipelineAnswer, PipelineList, PipelineStep, PipelineSummary};
use domain::run::{Node, NodeIndex, NodeKind, OnError};
use pipelines::{Format, Pipeline, graph};

pub(crate) use reload::{Reload, reload};
pub(crate) use start::{asked_for, start};

use crate::problem::no_such;
use crate::{Reply, RequestContext, Result, Server};

/// `GET /pipelines`.
pub(crate) fn list(server: &Server) -> Reply {
    let routes = server.pipelines.routes();
    let pipelines = routes.names().filter_map(|name| routes.find(name)).map(|pipeline| PipelineSummary {
        name: pipeline.name.clone(),
        version: pipeline.version.clone(),
        trigger: pipeline.trigger.to_string(),
        steps: pipeline.shape.0.len(),
    });
    Reply::json(&PipelineList { pipelines: pipelines.collect() })
}

/// `GET /pipelines/{name}`.
pub(crate) fn read(server: &Server, asked: &RequestContext) -> Result<Reply> {
    Ok(Reply::json(&PipelineAnswer { pipeline: shown(&*named(server, asked)?) }))
}

/// The pipeline that the path names.
fn named(server: &Server, asked: &RequestContext) -> Result<Arc<Pipeline>> {
    let routes = server.pipelines.routes();
    routes.find(&asked.id).cloned().ok_or_else(|| no_such("pipeline", &asked.id))
}

fn shown(pipeline: &Pipeline) -> api::Pipeline {
    let nodes = pipeline.shape.0.iter().zip(0..);
    api::Pipeline {
        name: pipeline.name.clone(),
        version: pipeline.version.clone(),
        trigger: pipeline.trigger.to_string(),
        from_plugin: pipeline.from_plugin.clone(),
        condition: pipeline.condition.as_ref().map(ToString::to_string),
        max_depth: pipeline.max_depth,
        dedupe_window_seconds: pipeline.dedupe_window_seconds,
        steps: nodes.map(|(node, at)| step(pipeline, node, at)).collect(),
        graph: graph(pipeline, Format::Text),
    }
}

fn step(pipeline: &Pipeline, node: &Node, at: NodeIndex) -> PipelineStep {
    let name = |at: NodeIndex| pipeline.shape.node(at).map(|node| node.id.clone()).unwrap_or_default();
    let detail = pipeline.plan.detail(at);
    let (kind, branches) = match &node.kind {
        NodeKind::Step => ("step", Vec::new()),
        NodeKind::Group { branches } => ("group", branches.iter().map(|at| name(*at)).collect()),
    };
    PipelineStep {
        step: node.id.clone(),
        kind: kind.to_owned(),
        executor: detail.and_then(|detail| detail.executor.clone()),
        condition: detail.and_then(|detail| Some(detail.condition.as_ref()?.to_string())),
        branches,
        next: node.next.map(name),
        on_error: match node.on_error {
            OnError::Stop => "stop".to_owned(),
            OnError::Continue => "continue".to_owned(),
            OnError::Go(to) => name(to),
        },
        timeout_seconds: detail.and_then(|detail| detail.timeout_seconds),
        max_attempts: detail.and_then(|detail| detail.retry?.max_attempts),
    }
}
