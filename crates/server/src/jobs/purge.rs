//! `POST /jobs/{id}/purge`: deletes the bodies of a job that is over, and what services said of its work. The record stays and says so.

use std::sync::Arc;

use api::Problem;
use domain::job::JobCommand;
use domain::operation::OperationCommand;
use domain::{Consequence, MAX_CONSEQUENCES, Record};
use engine::Order;

use super::order::{Begun, begin, give_order};
use super::visible::steerable_job;
use crate::problem::{of_engine, of_store};
use crate::render::operation_of;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

/// Operations of one job that one purge reaches: more than it has attempts.
const MAX_OPERATIONS: usize = 1_000;

pub(crate) async fn purge(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, None).await?;
    let mut order = Order::new(visible.id().clone(), JobCommand::Purge, asked.principal.actor.clone());
    let left = server.store().operations_of(&visible.job().id, MAX_OPERATIONS).await;
    let left = left.map_err(|error| of_store(&error))?;
    let ended = left.iter().filter(|record| operation_of(record).is_some_and(|one| one.ended.is_some()));
    let purge =
        |record: &Arc<Record>| Consequence { record: record.id(), command: OperationCommand::Purge.into() };
    order.also.extend(ended.map(purge));
    // What one commit cannot hold goes before: the job says that it is purged when all of it is.
    while order.also.len() > MAX_CONSEQUENCES && visible.job().state.name().is_terminal() {
        let Some(Consequence { record, command }) = order.also.pop() else { break };
        let mut part = Order::new(record, command, asked.principal.actor.clone());
        part.also = order.also.split_off(order.also.len() - MAX_CONSEQUENCES);
        server.daemon.engine().execute(part).await.map_err(|error| of_engine(&error, &asked.id))?;
    }
    give_order(server, &asked, &visible, keyed, order, Vec::new()).await
}
