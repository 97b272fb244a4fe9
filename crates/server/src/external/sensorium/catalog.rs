//! The catalog: the actions that directives may name. An entry is an executor's file whose operator wrote down its parameters' schema;
//! a request can name it and change nothing of it. Who does an action, and where, is not told.

use std::sync::Arc;

use api::deferred::Mode;
use api::sensorium::{Action, ActionCatalog};
use engine::InputSchema;

use super::directive::Rejection;
use crate::external::deferred::Capability;
use crate::{Reply, Server};

/// The executor behind an action, and what its parameters must be.
pub(super) fn action(
    server: &Server,
    circle: Option<&str>,
    id: &str,
) -> Result<(Capability, Arc<dyn InputSchema>), Rejection> {
    let unlisted = || Rejection::new("action-not-allowlisted", "the catalog has no such action");
    let capability = Capability::named(server, circle, id).map_err(|_| unlisted())?;
    let schema = capability.contract.parameters.clone().ok_or_else(unlisted)?;
    Ok((capability, schema))
}

/// Refuses a mode that the entry does not allow, whatever the caller wishes. The codes are those of `ProblemCode` as a directive spells
/// them: with hyphens.
pub(super) fn check_mode(capability: &Capability, mode: Mode) -> Result<(), Rejection> {
    let code = match mode {
        Mode::Async => "sync-only",
        Mode::Sync => "async-only",
    };
    capability.check(mode).map_err(|problem| Rejection::new(code, problem.detail.into_string()))
}

pub(super) fn list(server: &Server, circle: Option<&str>) -> Reply {
    let now = server.now();
    let entry = |name: &str| {
        let (capability, schema) = action(server, circle, name).ok()?;
        Some(Action {
            action_id: name.to_owned(),
            description: capability.contract.description.clone(),
            execution_mode_support: capability.modes.support.as_str().to_owned(),
            max_timeout_ms: capability.policy.invoke_timeout_ms,
            retry_after_seconds: capability.retry_after_seconds(),
            max_ttl_seconds: capability.life(None, now).map_or(0, |(end, _)| end.seconds_since(now)),
            parameters_schema: schema.text().clone(),
        })
    };
    Reply::json(&ActionCatalog { actions: server.daemon.executors().names().filter_map(entry).collect() })
}
