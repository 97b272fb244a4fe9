//! The job that a request names, if its caller sees it. "Not yours" and "not there" are one answer; only the audit log tells them apart.

use std::sync::Arc;

use api::Problem;
use domain::job::Job;
use domain::{Claim, Record, RecordId};
use store::Loaded;

use crate::asked::Asked;
use crate::audit::Verdict;
use crate::authorise;
use crate::problem::{no_such_job, of_store};
use crate::serve::Server;

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

    pub(crate) fn id(&self) -> &RecordId {
        &self.id
    }
}

/// The job behind a record that is known to be one.
pub(crate) fn job_of(record: &Record) -> &Job {
    match record {
        Record::Job(job) => job,
        Record::Operation(_) | Record::Event(_) | Record::Run(_) => unreachable!("a job's id names a job"),
    }
}

/// The job that the path names.
pub(crate) async fn visible_job(server: &Server, asked: &Asked) -> Result<Visible, Problem> {
    visible_named(server, asked, &asked.id).await
}

/// The job with this id, under whatever name the path has it.
pub(crate) async fn visible_named(server: &Server, asked: &Asked, id: &str) -> Result<Visible, Problem> {
    let turned_away = |verdict| {
        server.audit.note(&asked.principal.actor, asked.operation.name(), &asked.id, verdict);
        no_such_job(&asked.id)
    };
    let Ok(id @ RecordId::Job(_)) = RecordId::parse(id) else {
        return Err(turned_away(Verdict::Absent));
    };
    let Some(loaded) = server.store().load(&id).await.map_err(|error| of_store(&error))? else {
        return Err(turned_away(Verdict::Absent));
    };
    let visible = Visible { loaded, id };
    if !authorise::sees_job(&asked.principal, visible.job()) {
        return Err(turned_away(Verdict::NotVisible));
    }
    Ok(visible)
}

/// The same, for a caller that wants to change it. `claimed` is who the caller says it is.
pub(crate) async fn steerable_job(
    server: &Server,
    asked: &Asked,
    claimed: Option<&str>,
) -> Result<Visible, Problem> {
    let visible = visible_job(server, asked).await?;
    check_steering(server, asked, &visible, claimed)?;
    Ok(visible)
}

/// The same, under whatever name the path has it.
pub(crate) async fn steerable_named(server: &Server, asked: &Asked, id: &str) -> Result<Visible, Problem> {
    let visible = visible_named(server, asked, id).await?;
    check_steering(server, asked, &visible, None)?;
    Ok(visible)
}

fn check_steering(
    server: &Server,
    asked: &Asked,
    visible: &Visible,
    claimed: Option<&str>,
) -> Result<(), Problem> {
    authorise::check_steering(&asked.principal, visible.job(), claimed).inspect_err(|_| {
        server.audit.note(&asked.principal.actor, asked.operation.name(), &asked.id, Verdict::Forbidden);
    })
}
