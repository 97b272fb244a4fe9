//! Probes: whether the process lives, and whether it can serve.

use std::time::Duration;

use api::ProblemCode;
use domain::RecordKind;
use serde::Serialize;

use crate::daemon::clock;
use crate::problem::of_store;
use crate::{Reply, Result, Server};

/// The longest that the store may take to answer a probe.
const STORE_ANSWERS_WITHIN: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Health {
    status: &'static str,
    /// What an operator should know although it is no reason to stop serving.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

pub(crate) fn alive() -> Reply {
    Reply::json(&Health { status: "ok", detail: None })
}

/// Ready while the store answers and nobody has asked the daemon to stop.
pub(crate) async fn ready(server: &Server) -> Result<Reply> {
    if *server.closing.borrow() {
        return Err(ProblemCode::ShuttingDown.because("the daemon stops"));
    }
    let asked = server.store().earliest_due(RecordKind::Job);
    match tokio::time::timeout(STORE_ANSWERS_WITHIN, asked).await {
        Ok(Ok(_)) => Ok(Reply::json(&Health { status: "ready", detail: warnings(server).await })),
        Ok(Err(error)) => Err(of_store(error)),
        Err(_) => Err(ProblemCode::StoreUnavailable.because("the store does not answer")),
    }
}

/// What is wrong with the clock or the host although the daemon serves.
async fn warnings(server: &Server) -> Option<String> {
    let of_host = match server.host_warning.clone() {
        // A disk that does not answer holds up no one else.
        Some(warning) => {
            let asked = tokio::task::spawn_blocking(move || warning());
            tokio::time::timeout(STORE_ANSWERS_WITHIN, asked).await.ok().and_then(Result::ok).flatten()
        }
        None => None,
    };
    let found: Vec<String> = [clock::sentence(server), of_host].into_iter().flatten().collect();
    (!found.is_empty()).then(|| found.join("; "))
}
