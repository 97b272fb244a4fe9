//! The job that a request names, if its caller sees it and, where that is asked for, may change it.

use std::sync::Arc;

use domain::job::Job;
use domain::{Claim, Record, RecordId, RecordKind};
use store::Loaded;

use crate::access::visible::visible_record;
use crate::access::{Verdict, authorise};
use crate::{RequestContext, Result, Server};

/// A job that the caller sees.
pub(crate) struct Visible {
    loaded: Loaded,
    id: RecordId,
}

impl Visible {
    pub(crate) fn job(&self) -> &Job {
        job_of(&self.loaded.record)
    }

    pub(crate) fn record(&self) -> &Arc<Record> {
        &self.loaded.record
    }

    pub(crate) fn claim(&self) -> Option<&Claim> {
        self.loaded.claim.as_ref()
    }

    /// The same, if the caller may change it. `claimed` is who the caller says it is.
    pub(crate) fn steered_by(
        self,
        server: &Server,
        asked: &RequestContext,
        claimed: Option<&str>,
    ) -> Result<Self> {
        authorise::check_steering(&asked.principal, self.job(), claimed).inspect_err(|_| {
            server.audit.note(&asked.principal.actor, asked.operation.name, &asked.id, Verdict::Forbidden);
        })?;
        Ok(self)
    }

    /// The number of its newest fact.
    pub(crate) fn version(&self) -> u64 {
        self.loaded.head.version
    }

    pub(crate) fn id(&self) -> &RecordId {
        &self.id
    }
}

/// The job behind a record that is known to be one.
pub(crate) fn job_of(record: &Record) -> &Job {
    record.as_job().expect("a job's id names a job")
}

/// The job that the path names.
pub(crate) async fn visible_job(server: &Server, asked: &RequestContext) -> Result<Visible> {
    visible_named(server, asked, &asked.id).await
}

/// The job with this id.
pub(crate) async fn visible_named(server: &Server, asked: &RequestContext, id: &str) -> Result<Visible> {
    visible_called(server, asked, id, id).await
}

/// The same, where the caller calls it by another name.
pub(crate) async fn visible_called(
    server: &Server,
    asked: &RequestContext,
    id: &str,
    named: &str,
) -> Result<Visible> {
    let loaded = visible_record(server, asked, &[RecordKind::Job], id, named).await?;
    Ok(Visible { id: loaded.record.id(), loaded })
}

/// The job that the path names, for a caller that wants to change it. `claimed` is who the caller says it is.
pub(crate) async fn steerable_job(
    server: &Server,
    asked: &RequestContext,
    claimed: Option<&str>,
) -> Result<Visible> {
    visible_job(server, asked).await?.steered_by(server, asked, claimed)
}
