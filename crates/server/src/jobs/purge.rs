//! `POST /jobs/{id}/purge`: deletes the bodies of a job that is over. The record stays and says so.

use api::Problem;
use axum::response::Response;
use domain::job::JobCommand;

use super::order::{Begun, begin, give};
use super::visible::steerable_job;
use crate::asked::Asked;
use crate::serve::Server;

pub(crate) async fn purge(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, None).await?;
    give(server, &asked, &visible, keyed, JobCommand::Purge, Vec::new()).await
}
