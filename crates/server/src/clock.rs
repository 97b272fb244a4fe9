//! `/clock`: how the store's time stands to the wall clock, and the order to make it what the wall clock says.

use api::{Clock, ClockSet, Problem, ProblemCode};
use axum::response::Response;
use engine::rounded_seconds;

use crate::answer;
use crate::asked::Asked;
use crate::clock_text::text;
use crate::problem::of_engine;
use crate::serve::Server;

pub(crate) fn read(server: &Server) -> Response {
    answer::json(&shown(server))
}

/// Makes store time what the wall clock says. What is open keeps the time that it has left.
pub(crate) async fn set_right(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let daemon = server.daemon.clone();
    // To its end, even if the caller hangs up: the store must not know of a step that the clock has not made.
    let set = tokio::spawn(async move { daemon.set_clock_right().await }).await;
    let set = set.map_err(|_| ProblemCode::Internal.because("setting the clock right has broken off"))?;
    let step = set.map_err(|error| of_engine(&error, ""))?;
    let jumped_seconds = step.map_or(0, |step| rounded_seconds(step.by_micros()));
    let actor = &*asked.principal.actor;
    tracing::warn!(target: "audit", actor, jumped_seconds, "the store's time was set right");
    Ok(answer::json(&ClockSet { jumped_seconds, clock: shown(server) }))
}

/// The difference as a sentence, while there is one.
pub(crate) fn sentence(server: &Server) -> Option<String> {
    server.daemon.engine().clock().status().sentence()
}

fn shown(server: &Server) -> Clock {
    let status = server.daemon.engine().clock().status();
    Clock {
        store_time: text(status.store_time),
        wall_time: text(status.wall_time),
        step_seconds: status.step_seconds(),
        since: status.since.map(text),
        adopted_by_itself: status.adopted_by_itself,
        adopt_after_seconds: status.adopt_after_seconds,
        steps_adopted: status.steps,
        detail: status.sentence(),
    }
}
