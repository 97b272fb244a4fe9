//! `POST /plugin/{plugin}/breaker/reset`: a plugin that is left alone because its jobs failed may be started again, on this node. The
//! jobs that wait for it are looked at, at once.

use api::ductile::{PluginBreaker, PluginReset};
use api::{Problem, ProblemCode};
use domain::Timestamp;
use domain::breaker::BreakerState;
use executors::plugin::Plugin;

use super::plugin::plugin_named;
use crate::clock_text::text;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

pub(crate) fn reset_breaker(server: &Server, asked: &RequestContext) -> Result<Reply, Problem> {
    let plugin = plugin_named(server, asked.principal.circle.as_deref(), &asked.id)
        .map_err(|told| ProblemCode::NotFound.because(told))?;
    let (now, name, actor) = (server.now(), &plugin.name, &*asked.principal.actor);
    let before = plugin.breaker(now).as_str();
    plugin.reset_breaker();
    server.daemon.attempts().look_at_lane(&plugin.lane());
    tracing::info!(target: "audit", actor, plugin = name, before, "breaker reset");
    Ok(Reply::json(&PluginReset { plugin: name.clone(), breaker: shown(plugin, now) }))
}

/// The breaker of a plugin as it is shown.
pub(super) fn shown(plugin: &Plugin, now: Timestamp) -> PluginBreaker {
    let state = plugin.breaker(now);
    let threshold = Some(plugin.settings.breaker.threshold).filter(|threshold| *threshold > 0);
    let (failures, open_until) = match state {
        BreakerState::Closed { failures } => (Some(failures), None),
        BreakerState::Open { until } => (None, Some(text(until))),
        BreakerState::Off | BreakerState::HalfOpen => (None, None),
    };
    PluginBreaker { state: state.as_str().to_owned(), failures, threshold, open_until }
}
