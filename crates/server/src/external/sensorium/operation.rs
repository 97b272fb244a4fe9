//! `sensorium.operation.status` and `sensorium.operation.cancel`: the handle in the body instead of in the path.

use api::sensorium::OperationNamed;
use api::{CancelJob, Problem};

use crate::access::authorise::{self, Permission};
use crate::external::deferred;
use crate::problem::at_field;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

/// Where it is, by what the poller last heard from its connector.
pub(super) async fn status(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let named: OperationNamed = asked.read()?;
    if named.reason.is_some() {
        let told = "a status has no reason";
        return Err(at_field("reason", "extra_forbidden", told));
    }
    deferred::read_status(server, RequestContext { id: named.operation_id, wait: None, ..asked }).await
}

pub(super) async fn cancel(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    authorise::check(&asked.principal, asked.operation, Permission::Cancel)?;
    let named: OperationNamed = asked.read()?;
    let body = CancelJob { reason: named.reason, ..CancelJob::default() };
    let body = serde_json::to_string(&body).expect("it has only string keys");
    deferred::cancel(server, RequestContext { id: named.operation_id, body: Some(body), ..asked }).await
}
