//! `/clock`: how the store's time stands to the wall clock, and the order to make it what the wall clock says.

use std::sync::Arc;

use api::{Clock, ClockSet, ClockStep, ProblemCode};
use engine::rounded_seconds;

use crate::clock_text::text;
use crate::problem::{of_engine, of_store};
use crate::{Reply, RequestContext, Result, Server};

pub(crate) async fn read(server: &Server) -> Result<Reply> {
    Ok(Reply::json(&shown(server).await?))
}

/// Makes store time what the wall clock says. What is open keeps the time that it has left.
pub(crate) async fn set_right(server: &Server, asked: RequestContext) -> Result<Reply> {
    let daemon = server.daemon.clone();
    // To its end, even if the caller hangs up: the store must not know of a step that the clock has not made.
    let by = Arc::from(&*asked.principal.actor);
    let set = tokio::spawn(async move { daemon.set_clock_right(by).await }).await;
    let set = set.map_err(|_| ProblemCode::Internal.because("setting the clock right has broken off"))?;
    let step = set.map_err(|error| of_engine(&error, ""))?;
    let jumped_seconds = step.map_or(0, |step| rounded_seconds(step.by_micros()));
    let actor = &*asked.principal.actor;
    tracing::warn!(target: "audit", actor, jumped_seconds, "the store's time was set right");
    Ok(Reply::json(&ClockSet { jumped_seconds, clock: shown(server).await? }))
}

/// The difference as a sentence, while there is one.
pub(crate) fn sentence(server: &Server) -> Option<String> {
    server.daemon.engine().clock().status().sentence()
}

async fn shown(server: &Server) -> Result<Clock> {
    let known = server.store().clock().await.map_err(of_store)?;
    let steps = known.steps.as_slice().iter().zip(&known.adopted_by).map(|(step, by)| ClockStep {
        from: text(step.from),
        to: text(step.to),
        seconds: rounded_seconds(step.by_micros()),
        adopted_by: by.to_string(),
    });
    let status = server.daemon.engine().clock().status();
    Ok(Clock {
        store_time: text(status.store_time),
        wall_time: text(status.wall_time),
        step_seconds: status.step_seconds(),
        since: status.since.map(text),
        adopted_by_itself: status.adopted_by_itself,
        adopt_after_seconds: status.adopt_after_seconds,
        steps_adopted: status.steps,
        detail: status.sentence(),
        steps: steps.collect(),
    })
}
