//! `POST /jobs/{id}/defer`: whoever pulled a job has given it to a service. Its connector takes the work over, and the host asks.

use std::sync::Arc;

use api::{After, DeferJob, FieldError, Problem, ProblemCode, StatusAnswer};
use axum::response::Response;
use domain::job::AfterExternal;
use domain::policy::Hint;
use domain::{AttemptId, BodyName};
use engine::{Assignment, Deferral, ForeignWork};

use crate::answer;
use crate::asked::Asked;
use crate::authorise;
use crate::jobs::{Visible, job_of, steerable_job};
use crate::problem::{of_engine, of_store};
use crate::render::{Bodies, Extent, status};
use crate::serve::Server;

pub(crate) async fn defer(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let sent: DeferJob = asked.read()?;
    let visible = steerable_job(server, &asked, None).await?;
    authorise::check_executor(&asked.principal, Some(&sent.executor))?;
    let attempt_id = AttemptId::new(sent.attempt_id.as_str());
    let deferral = deferral(server, &visible, &attempt_id, &sent).await?;
    let (attempts, actor) = (server.daemon.attempts(), asked.principal.actor.clone());
    let left = attempts.leave_outside(visible.job(), &attempt_id, &sent.executor, deferral, actor).await;
    let record = left.map_err(|error| of_engine(&error, &asked.id))?;
    let job = job_of(&record);
    let bodies = Bodies::of_status(server.store(), job).await?;
    let status = status(server.daemon.executors(), job, None, &bodies, Extent::Whole);
    Ok(answer::json(&StatusAnswer { status }))
}

/// The work, as its connector will find it again.
async fn deferral(
    server: &Server,
    visible: &Visible,
    attempt_id: &AttemptId,
    sent: &DeferJob,
) -> Result<Deferral, Problem> {
    let job = visible.job();
    let (executors, circle) = (server.daemon.executors(), job.spec.circle.as_deref());
    let Some(executor) = executors.find(circle, &sent.executor) else {
        let near = executors.near(circle, &sent.executor);
        return Err(refused("executor", format!("no executor is named {:?}{near}", sent.executor)));
    };
    if sent.id.is_none() && sent.location.is_none() {
        return Err(refused("id", "say by which id or location the service knows the work".to_owned()));
    }
    let input = job.bodies.iter().find(|body| body.name == BodyName::Input);
    let input = match input {
        Some(body) => server.store().body(visible.id(), *body).await.map_err(|error| of_store(&error))?,
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
    let adopted = adopted.map_err(|told| refused("executor", format!("{}: {told}", sent.executor)))?;
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

fn refused(field: &'static str, told: String) -> Problem {
    let error = FieldError::new("invalid_value", &["body", field], told.clone());
    ProblemCode::InvalidRequest.because(told).at(error)
}
