//! `POST /plugin/{plugin}/breaker/reset`: a plugin that is left alone because its jobs failed may be started again, on this node. The
//! jobs that wait for it are looked at, at once.

use api::ductile::{PluginBreaker, PluginReset};
use api::{Problem, ProblemCode};
use axum::response::Response;
use domain::Timestamp;
use domain::breaker::BreakerState;
use engine::plugin::Plugin;

use super::plugin::plugin_named;
use crate::answer;
use crate::asked::Asked;
use crate::clock_text::text;
use crate::serve::Server;

pub(crate) fn reset_breaker(server: &Server, asked: &Asked) -> Result<Response, Problem> {
    let plugin = plugin_named(server, asked.principal.circle.as_deref(), &asked.id)
        .map_err(|told| ProblemCode::NotFound.because(told))?;
    let (now, name, actor) = (server.now(), &plugin.name, &*asked.principal.actor);
    let before = plugin.breaker(now).as_str();
    plugin.reset_breaker();
    server.daemon.attempts().look_at_lane(&plugin.lane());
    tracing::info!(target: "audit", actor, plugin = name, before, "breaker reset");
    Ok(answer::json(&PluginReset { plugin: name.clone(), breaker: shown(plugin, now) }))
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
