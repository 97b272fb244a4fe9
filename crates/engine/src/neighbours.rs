//! What other nodes can do: work that nobody here can do is left to them, and fails only if nobody can do it.

use domain::Timestamp;

use crate::{Engine, EngineError, Standing};

/// Whether another node that lives has an executor of this name. Alone on its store a node asks nobody.
pub(crate) async fn have(
    engine: &Engine,
    standing: &Standing,
    executor: &str,
    now: Timestamp,
) -> Result<bool, EngineError> {
    if !standing.is_shared() {
        return Ok(false);
    }
    let nodes = engine.store().nodes().await?;
    // What we have ourselves is not asked for here.
    Ok(nodes.iter().any(|node| !node.is_silent(now) && node.executors.iter().any(|name| name == executor)))
}
