//! `POST /jobs/{id}/cancel`: a request first; terminal when confirmed, when nothing had started, or when its time is over.

use api::{CancelJob, Problem};
use axum::response::Response;
use domain::job::JobCommand;

use super::order::{Begun, begin, give};
use super::visible::steerable_job;
use crate::asked::Asked;
use crate::serve::Server;

const DEFAULT_REASON: &str = "cancel_requested";

pub(crate) async fn cancel(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let cancel: CancelJob = asked.read()?;
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, cancel.requested_by_peer_id.as_deref()).await?;
    let command = JobCommand::RequestCancel {
        by: asked.principal.peer_id.clone().or(cancel.requested_by_peer_id),
        reason: cancel.reason.unwrap_or_else(|| DEFAULT_REASON.to_owned()),
    };
    give(server, &asked, &visible, keyed, command, Vec::new()).await
}
