//! Probes: whether the process lives, and whether it can serve.

use std::time::Duration;

use api::{Problem, ProblemCode};
use axum::response::Response;
use domain::RecordKind;
use serde::Serialize;

use crate::answer;
use crate::clock;
use crate::problem::of_store;
use crate::serve::Server;

/// The longest that the store may take to answer a probe.
const STORE_ANSWERS_WITHIN: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Health {
    status: &'static str,
    /// What an operator should know although it is no reason to stop serving.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

pub(crate) fn alive() -> Response {
    answer::json(&Health { status: "ok", detail: None })
}

/// Ready while the store answers and nobody has asked the daemon to stop.
pub(crate) async fn ready(server: &Server) -> Result<Response, Problem> {
    if *server.closing.borrow() {
        return Err(ProblemCode::ShuttingDown.because("the daemon stops"));
    }
    let asked = server.store().earliest_due(RecordKind::Job);
    match tokio::time::timeout(STORE_ANSWERS_WITHIN, asked).await {
        Ok(Ok(_)) => Ok(answer::json(&Health { status: "ready", detail: clock::sentence(server) })),
        Ok(Err(error)) => Err(of_store(&error)),
        Err(_) => Err(ProblemCode::StoreUnavailable.because("the store does not answer")),
    }
}
