//! `POST /callbacks/{operation}/{token}`: a service says that there is news. Poll or callback, whichever is first.
//!
//! What a body says is not believed: its service is asked at once, unless the executor says that its callbacks carry the answer. The
//! token is the only way in; it is for one operation of one executor, for this purpose, and for a time. A wrong one reads like no route.
//! A service that signs what it sends is held to it.

mod key;

use std::sync::Arc;

use api::ProblemCode;
use domain::{OperationId, RecordId};
use engine::{Registered, SignedWebhook};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

pub use key::{CallbackKey, CallbackTarget};

use crate::problem::of_store;
use crate::request_context::{Raw, RequestContext};
use crate::{Reply, Result, Server};

/// Callbacks that wait at the same time until their services may be asked; more are sent away, to be sent again.
pub(crate) const MAX_WAITING: usize = 256;

pub(crate) async fn take(server: &Arc<Server>, asked: RequestContext) -> Result<Reply> {
    let nowhere = || ProblemCode::NotFound.because("there is no such callback, or its time is over");
    let key = server.callbacks.as_ref().ok_or_else(nowhere)?;
    let Ok(RecordId::Operation(operation)) = RecordId::parse(&asked.id) else { return Err(nowhere()) };
    let address = key.read(&operation, &asked.name, server.now()).ok_or_else(nowhere)?;
    let CallbackTarget { executor, circle } = &address.target;
    let executor = server.daemon.executors().find(circle.as_deref(), executor);
    let raw = asked.raw.unwrap_or_default();
    if executor.is_some_and(|executor| !is_signed(server, executor, &raw)) {
        return Err(ProblemCode::Unauthenticated.because("the callback is not signed as its service signs"));
    }
    let Ok(place) = server.waiting_callbacks.clone().try_acquire_owned() else {
        return Err(ProblemCode::Overloaded.because("too many callbacks wait; send it again"));
    };
    let id = RecordId::Operation(operation.clone());
    let mut known = server.load(&id).await?.is_some();
    if !known {
        // A service may be faster than the commit that writes its handle down. What only means news needs no words.
        let carries = executor.is_some_and(|executor| executor.specialist.read_callback(&raw.body).is_some());
        let body = if carries { &raw.body[..] } else { &[] };
        let kept = server.daemon.engine().keep_early_callback(&operation, body, address.expires_at).await;
        kept.map_err(of_store)?;
        // Whoever writes the operation down looks for what is kept afterwards; it may have come in between.
        known = server.load(&id).await?.is_some();
    }
    if known {
        hear(server.clone(), operation, raw.body.into(), place);
    }
    Ok(Reply::json(&json!({ "status": "accepted" })).accepted())
}

/// Whether the callback is signed, if its service signs.
fn is_signed(server: &Server, executor: &Registered, raw: &Raw) -> bool {
    let header = |name| raw.headers.get(name).unwrap_or_default();
    let webhook = SignedWebhook {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signatures: header("webhook-signature"),
        body: &raw.body,
    };
    executor.specialist.admits_callback(webhook, server.now())
}

/// Lets the daemon know, in a task of its own: whoever calls back does not wait for what comes of it.
fn hear(server: Arc<Server>, operation: OperationId, body: Arc<[u8]>, place: OwnedSemaphorePermit) {
    tokio::spawn(async move {
        if let Err(error) = server.daemon.called_back(&operation, body).await {
            // It is asked about when it is due, as if nobody had called.
            tracing::info!(%operation, code = error.code(), "the callback changed nothing: {error}");
        }
        drop(place);
    });
}
