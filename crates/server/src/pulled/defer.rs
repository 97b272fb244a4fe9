//! `POST /jobs/{id}/defer`: whoever pulled a job has given it to a service. Its connector takes the work over, and the host asks.

use std::sync::Arc;

use api::{After, DeferJob};
use domain::job::AfterExternal;
use domain::policy::Hint;
use domain::{AttemptId, BodyName};
use engine::{Assignment, Deferral, ForeignWork};

use crate::access::authorise;
use crate::jobs::refused_report::attempt_named;
use crate::jobs::{Begun, Visible, begin, give_order, steerable_job};
use crate::problem::at_field;
use crate::{Reply, RequestContext, Result, Server};

pub(crate) async fn defer(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: DeferJob = asked.read()?;
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, None).await?;
    authorise::check_executor(&asked.principal, Some(&sent.executor))?;
    let attempt_id = attempt_named(&sent.attempt_id)?;
    let deferral = deferral(server, &visible, &attempt_id, &sent).await?;
    let (attempts, actor) = (server.daemon.attempts(), asked.principal.actor.clone());
    let order = attempts.leaving_to(
        visible.job(),
        &attempt_id,
        &sent.executor,
        deferral,
        actor,
        asked.principal.reporter(),
    );
    give_order(server, &asked, &visible, keyed, order, Vec::new()).await
}

/// The work, as its connector will find it again.
async fn deferral(
    server: &Server,
    visible: &Visible,
    attempt_id: &AttemptId,
    sent: &DeferJob,
) -> Result<Deferral> {
    let job = visible.job();
    let (executors, circle) = (server.daemon.executors(), job.spec.circle.as_deref());
    let Some(executor) = executors.find(circle, &sent.executor) else {
        let near = executors.near(circle, &sent.executor);
        return Err(at_field(
            "executor",
            "invalid_value",
            format!("no executor is named {:?}{near}", sent.executor),
        ));
    };
    if sent.id.is_none() && sent.location.is_none() {
        return Err(at_field(
            "id",
            "invalid_value",
            "say by which id or location the service knows the work".to_owned(),
        ));
    }
    let input = job.bodies.iter().find(|body| body.name == BodyName::Input);
    let input = match input {
        Some(body) => server.body(visible.id(), *body).await?,
        None => None,
    };
    let assignment = Assignment {
        job: Arc::new(job.clone()),
        attempt_id: attempt_id.clone(),
        attempt_number: job.attempt_count,
        input: input.unwrap_or_else(|| b"null".to_vec()),
        prompt: None,
        answers: Vec::new(),
        arrived: None,
    };
    let work = ForeignWork { id: sent.id.clone().unwrap_or_default(), location: sent.location.clone() };
    let adopted = executor.specialist.adopt(&assignment, work);
    let adopted = adopted
        .map_err(|told| at_field("executor", "invalid_value", format!("{}: {told}", sent.executor)))?;
    Ok(Deferral {
        retry_after: sent.retry_after_seconds.map_or(Hint::Absent, |after| Hint::Seconds(i64::from(after))),
        progress_hint: sent.progress_hint.clone(),
        then: match sent.then {
            Some(After::Resume) => AfterExternal::Resume,
            Some(After::Finish) | None => AfterExternal::Finish,
        },
        ..adopted
    })
}
