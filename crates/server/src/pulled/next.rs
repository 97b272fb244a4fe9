//! `POST /jobs/next`: waits for a job and hands it out, with a lease.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use api::{Handed, ProblemCode, PullJob, PulledJob, Role};
use domain::OwnerId;
use domain::ask::correlation_id;
use domain::job::Pull;
use domain::limits::{MAX_LABEL_BYTES, MAX_TITLE_BYTES};
use engine::{EngineError, PulledLane, Puller};
use serde_json::value::RawValue;

use crate::access::authenticate::{Freshness, Principal};
use crate::access::authorise;
use crate::clock_text;
use crate::jobs::job_of;
use crate::peers;
use crate::problem::{at_field, of_engine};
use crate::pulled::claims;
use crate::render::{Bodies, Extent, raw, status};
use crate::wait::{MAX_WAIT_SECONDS, Patience};
use crate::{Reply, RequestContext, Result, Server};

/// How long a puller waits if it does not say.
const DEFAULT_WAIT_SECONDS: u64 = 30;
/// Lanes that one puller may name, and so many labels, and so many folders.
pub(crate) const MAX_NAMES: usize = 32;

/// A puller waits in a place of its own: it is not in the way of requests.
pub(crate) async fn pull(server: &Server, mut asked: RequestContext) -> Result<Reply> {
    let slot = asked.slot.take();
    let pull: PullJob = asked.read()?;
    let puller = puller(server, &asked, &pull)?;
    let _heard = peers::waits(server, &asked.principal, pull.circle.as_deref(), pull.peer_id.as_deref());
    let within = Duration::from_secs(pull.wait_seconds.unwrap_or(DEFAULT_WAIT_SECONDS).min(MAX_WAIT_SECONDS));
    drop(slot);
    let handed =
        wait(server, &asked.principal, puller, within).await.map_err(|error| of_engine(&error, ""))?;
    let Some(handed) = handed else {
        if !within.is_zero() {
            server.check_still_admits(&asked.principal).await?;
        }
        return Ok(Reply::json(&PulledJob { job: None }));
    };
    let answer = handed_out(server, &asked, &handed).await;
    if let Err(problem) = &answer
        && problem.code == ProblemCode::BodyDamaged.as_str()
    {
        // The job must say why nobody gets it.
        let failed = server.daemon.pulls().fail_damaged(&handed, &problem.detail).await;
        failed.map_err(|error| of_engine(&error, ""))?;
    }
    answer
}

/// The job as its worker gets it.
async fn handed_out(server: &Server, asked: &RequestContext, handed: &engine::Handed) -> Result<Reply> {
    let job = job_of(&handed.record);
    let bodies = Bodies::of_status(server.store(), job).await?;
    let mut answers = Vec::with_capacity(job.answers.len());
    for given in &job.answers {
        answers.extend(server.json_of(job, *given).await?.map(Cow::Owned));
    }
    let arrived = match job.result.data {
        Some(data) => server.json_of(job, data).await?.map(Cow::Owned),
        None => None,
    };
    let given = Handed {
        job_id: Cow::Borrowed(job.id.as_str()),
        attempt_id: Cow::Borrowed(handed.attempt_id.as_str()),
        attempt_number: job.attempt_count,
        correlation_id: job.last_attempt().and_then(|last| correlation_id(job, last)).map(Cow::Owned),
        lease_expires_at: Cow::Owned(clock_text::text(handed.claim.lease_expires_at)),
        heartbeat_every_seconds: server.daemon.pulls().lease().renew_every_seconds(),
        title: Cow::Borrowed(&job.spec.title),
        prompt: bodies.named(job, domain::BodyName::Prompt).map(Cow::Borrowed),
        input: bodies
            .named(job, domain::BodyName::Input)
            .and_then(|text| RawValue::from_string(text.to_owned()).ok())
            .map_or_else(|| raw("null".to_owned()), Cow::Owned),
        answers,
        arrived,
        status: status(
            server.daemon.executors(),
            job,
            Some(&handed.claim),
            &bodies,
            Extent::Whole,
            &asked.principal.reporter(),
        ),
    };
    Ok(Reply::json(&PulledJob { job: Some(given) }))
}

/// The first job that comes within the time.
async fn wait(
    server: &Server,
    principal: &Principal,
    puller: Puller,
    within: Duration,
) -> Result<Option<engine::Handed>, EngineError> {
    let pulls = server.daemon.pulls();
    if within.is_zero() {
        return pulls.pull_now(puller).await;
    }
    let mut patience = Patience::new(server, within);
    let enough = async { patience.wait_for(pending()).await.unwrap_or_default() };
    // Nothing is handed to whom the store cannot tell about: the next question is answered again.
    let admits = || async { server.still_admits(principal, Freshness::Now).await.unwrap_or_default() };
    pulls.pull(puller, enough, admits).await
}

/// Who asks, for what.
fn puller(server: &Server, asked: &RequestContext, pull: &PullJob) -> Result<Puller> {
    let circle = authorise::circle_of_new(&asked.principal, pull.circle.clone())?;
    let peer = peer(&asked.principal, pull)?;
    // The record of the attempt could not name its holder: no job could ever be handed out so.
    if peer.is_some_and(|peer| peer.chars().count() > MAX_LABEL_BYTES) {
        let told = format!("a peer's id has at most {MAX_LABEL_BYTES} characters");
        return Err(at_field("peer_id", "too_long", told));
    }
    let named = [
        ("lanes", &pull.lanes, MAX_LABEL_BYTES),
        ("labels", &pull.labels, MAX_LABEL_BYTES),
        ("paths", &pull.paths, MAX_TITLE_BYTES),
    ];
    for (field, names, limit) in named {
        if names.len() > MAX_NAMES {
            return Err(at_field(field, "too_long", format!("at most {MAX_NAMES} {field} may be named")));
        }
        if names.iter().any(|name| name.chars().count() > limit) {
            return Err(at_field(field, "too_long", format!("a name has at most {limit} characters")));
        }
    }
    let nothing_named = peer.is_none() && named.iter().all(|(_, names, _)| names.is_empty());
    let anyone = pull.anything.unwrap_or(nothing_named).then_some(Pull::Anyone);
    let wanted = peer.into_iter().map(Pull::Assigned);
    let wanted = wanted.chain(pull.lanes.iter().map(|name| Pull::Lane(name)));
    let wanted = wanted.chain(pull.labels.iter().map(|name| Pull::Label(name)));
    let wanted = wanted.chain(pull.paths.iter().map(|name| Pull::Folder(name))).chain(anyone);
    // Each once: whoever names a lane twice is handed one job all the same.
    let wanted: BTreeSet<Pull<'_>> = wanted.collect();
    let lanes = wanted.into_iter().map(|pull| PulledLane {
        name: Arc::from(pull.lane(circle.as_deref())),
        limit: match pull {
            Pull::Lane(name) => server.daemon.pulls().limit_of(name),
            Pull::Assigned(_) | Pull::Label(_) | Pull::Folder(_) | Pull::Anyone => None,
        },
    });
    Ok(Puller {
        owner: owner(server, pull)?,
        actor: asked.principal.actor.clone(),
        caller: asked.principal.caller(peer),
        lanes: lanes.collect(),
    })
}

/// The peer whose assigned jobs are meant. Doers pull only as the peer that their token speaks for: they could not report as
/// another.
fn peer<'a>(principal: &'a Principal, pull: &'a PullJob) -> Result<Option<&'a str>> {
    let (own, named) = (principal.peer_id.as_deref(), pull.peer_id.as_deref());
    match principal.role {
        Role::Peer | Role::Agent if named.is_some() && named != own => {
            Err(ProblemCode::Forbidden.because("the token does not speak for this peer; leave `peer_id` out"))
        }
        Role::Admin | Role::Operator | Role::Viewer | Role::Peer | Role::Agent => Ok(named.or(own)),
    }
}

fn owner(server: &Server, pull: &PullJob) -> Result<OwnerId> {
    match &pull.worker_id {
        Some(worker) => claims::owner("worker_id", worker),
        None => Ok(OwnerId::outside(server.daemon.engine().ids().attempt_id().as_str())),
    }
}
