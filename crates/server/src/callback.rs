//! `POST /callbacks/{operation}/{token}`: a service says that there is news. Poll or callback, whichever is first.
//!
//! What a body says is not believed: its service is asked at once, unless the executor says that its callbacks carry the answer. The
//! token is the only way in; it is for one operation, for this purpose, and for a time. A wrong one reads like no route.

mod early;
mod key;
mod mac;
mod webhook;

use std::sync::Arc;

use api::{Problem, ProblemCode};
use axum::http::StatusCode;
use axum::response::Response;
use domain::{OperationId, RecordId};
use serde_json::json;

pub(crate) use early::EarlyCallbacks;
pub use key::CallbackKey;
pub use webhook::{SignedWebhook, verify_webhook};

use crate::answer;
use crate::asked::Asked;
use crate::problem::of_store;
use crate::serve::Server;

pub(crate) async fn take(server: &Arc<Server>, asked: Asked) -> Result<Response, Problem> {
    let nowhere = || ProblemCode::NotFound.because("there is no such callback, or its time is over");
    let key = server.callbacks.as_ref().ok_or_else(nowhere)?;
    let operation = match RecordId::parse(&asked.id) {
        Ok(RecordId::Operation(id)) if key.admits(&id, &asked.name, server.now()) => id,
        Ok(_) | Err(_) => return Err(nowhere()),
    };
    let body: Arc<[u8]> = Arc::from(asked.body.unwrap_or_default().into_bytes());
    let id = RecordId::Operation(operation.clone());
    let known = server.store().load(&id).await.map_err(|error| of_store(&error))?.is_some();
    let remembered = if known {
        hear(server.clone(), operation, body);
        true
    } else {
        early::remember(server, operation, body)
    };
    if !remembered {
        return Err(
            ProblemCode::Overloaded.because("too many callbacks wait for their operations; send it again")
        );
    }
    let mut response = answer::json(&json!({ "status": "accepted" }));
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

/// Lets the daemon know, in a task of its own: whoever calls back does not wait for what comes of it.
fn hear(server: Arc<Server>, operation: OperationId, body: Arc<[u8]>) {
    tokio::spawn(async move {
        if let Err(error) = server.daemon.called_back(&operation, body).await {
            // It is asked about when it is due, as if nobody had called.
            tracing::info!(%operation, code = error.code(), "the callback changed nothing: {error}");
        }
    });
}
