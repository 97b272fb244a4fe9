//! What other nodes can do: work that nobody here can do is left to them, and fails only if nobody can do it.

use domain::{OwnerId, Timestamp};

use crate::{Engine, EngineError, Standing};

/// Whose jobs are to be done.
#[derive(Clone, Copy)]
pub(crate) enum Whose<'a> {
    /// Those of any circle, as in a lane.
    Anybodys,
    /// Those of this circle, or of none: what is for another circle does not count.
    Of(Option<&'a str>),
}

/// Whether another node that lives has an executor of this name. Alone on its store a node asks nobody.
pub(crate) async fn have(
    engine: &Engine,
    standing: &Standing,
    executor: &str,
    whose: Whose<'_>,
    now: Timestamp,
) -> Result<bool, EngineError> {
    if !standing.is_shared() {
        return Ok(false);
    }
    let nodes = engine.store().nodes().await?;
    // What we have ourselves is not asked for here.
    let mut living = nodes.iter().filter(|node| !node.is_silent(now));
    Ok(living.any(|node| node.executors.iter().any(|published| does(published, executor, whose))))
}

/// Whether another node that lives is this owner of claims. Alone on its store a node has no other.
pub(crate) async fn live_as(
    engine: &Engine,
    standing: &Standing,
    owner: &OwnerId,
    now: Timestamp,
) -> Result<bool, EngineError> {
    if !standing.is_shared() {
        return Ok(false);
    }
    let nodes = engine.store().nodes().await?;
    Ok(nodes.iter().any(|node| node.id == owner.as_str() && !node.is_silent(now)))
}

/// Whether what a node publishes does such jobs: `name` is for everybody, `circle/name` for one circle.
fn does(published: &str, executor: &str, whose: Whose<'_>) -> bool {
    match (published.split_once('/'), whose) {
        (None, _) => published == executor,
        (Some((_, name)), Whose::Anybodys) => name == executor,
        (Some((circle, name)), Whose::Of(own)) => name == executor && own == Some(circle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_another_circle_does_not_count() {
        for (published, whose, expected) in [
            ("press", Whose::Of(None), true),
            ("press", Whose::Of(Some("bindery")), true),
            ("bindery/press", Whose::Of(Some("bindery")), true),
            ("bindery/press", Whose::Of(Some("foundry")), false),
            ("bindery/press", Whose::Of(None), false),
            ("bindery/press", Whose::Anybodys, true),
            ("presses", Whose::Anybodys, false),
        ] {
            assert_eq!(does(published, "press", whose), expected, "{published}");
        }
    }
}
