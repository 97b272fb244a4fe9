//! `POST /v1/capabilities/{id}/invoke` and `POST /v1/host/capabilities/{id}`: an executor, or what the host itself can.

use std::sync::Arc;

use api::Problem;

use crate::external::deferred;
use crate::external::sensorium;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

pub(crate) async fn invoke(server: &Arc<Server>, asked: RequestContext) -> Result<Reply, Problem> {
    match sensorium::Name::parse(&asked.id) {
        Some(name) => Box::pin(sensorium::carry_out(server, name, asked)).await,
        None => Box::pin(deferred::invoke(server, asked)).await,
    }
}

pub(crate) async fn invoke_as_host(server: &Arc<Server>, asked: RequestContext) -> Result<Reply, Problem> {
    match sensorium::Name::parse(&asked.id) {
        Some(name) => {
            // A directive says its mode itself.
            deferred::host_mode(&asked)?;
            Box::pin(sensorium::carry_out(server, name, asked)).await
        }
        None => Box::pin(deferred::invoke_as_host(server, asked)).await,
    }
}
