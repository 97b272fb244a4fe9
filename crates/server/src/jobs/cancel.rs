//! `POST /jobs/{id}/cancel`: a request first, which is always kept; terminal when confirmed, when nothing had started, or when its time
//! is over.

use api::{CancelJob, Problem};
use domain::job::JobCommand;
use domain::{Command, Record};
use engine::Outcome;

use super::order::{Begun, begin, give};
use super::visible::steerable_job;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

const DEFAULT_REASON: &str = "cancel_requested";

pub(crate) async fn cancel(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
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

/// Whether an order asks to stop a job.
pub(crate) fn is_cancel(command: &Command) -> bool {
    matches!(command, Command::Job(JobCommand::RequestCancel { .. } | JobCommand::CancelOrRefuse { .. }))
}

/// A repeat that left no fact, because the record keeps enough of them one by one, is counted.
pub(crate) fn count_repeat(server: &Server, outcome: &Outcome) {
    if let (Outcome::AlreadySo { .. }, Record::Job(job)) = (outcome, &**outcome.record())
        && job.counts_cancel_repeat()
    {
        server.daemon.stale_reports().note_cancel_repeat(&job.id);
    }
}
