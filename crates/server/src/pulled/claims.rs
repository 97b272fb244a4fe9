//! `/claims`: leases on resources as a protocol of its own (Azolla). A claim is the agenda row of a job or of an event that waits, and nothing more: it
//! makes no attempt and leaves no fact. Whoever holds one reports the end under it (`claim` in `PATCH /jobs/{id}`), and nobody else
//! reports meanwhile; a report that is not an end gives the claim back.

mod event;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use api::{AcquireClaim, ClaimAnswer, ClaimRecord, Problem, ProblemCode, SwapClaim};
use domain::job::Pull;
use domain::{Claim, Fence, Lease, OwnerId, RecordId, Refusal, Timestamp};
use engine::{EngineError, Held, PulledLane};
use store::{StoreError, Taken};
use tokio::time::Instant;

use crate::access::authorise;
use crate::clock_text;
use crate::jobs::{job_of, visible_named};
use crate::problem::{at_field, of_engine, of_store};
use crate::wait::{MAX_WAIT_SECONDS, Patience};
use crate::{Reply, RequestContext, Result, Server};

pub(crate) use event::MAX_TYPES;
pub(crate) use settle::{SETTLED_STATES, settle};

/// Characters of an owner's id.
pub(crate) const MAX_OWNER_CHARS: usize = 64;

/// How long a claim that is waited for goes without a look.
const LOOK_EVERY: Duration = Duration::from_millis(200);

const WORKORDER: &str = "WORKORDER";
const EVENT: &str = "EVENT";
/// What a claim may name.
pub(crate) const RESOURCE_TYPES: [&str; 2] = [EVENT, WORKORDER];

/// What can be claimed.
enum Resource {
    /// Azolla's name for a job.
    Workorder,
    /// An event that waits: whoever holds it keeps it from the router.
    Event,
}

impl Resource {
    fn parse(word: &str) -> Result<Self> {
        match word {
            WORKORDER => Ok(Self::Workorder),
            EVENT => Ok(Self::Event),
            _ => {
                let told = "resource_type must be one of: EVENT, WORKORDER";
                Err(at_field("resource_type", "invalid_value", told))
            }
        }
    }
}

/// Who claims, for how long, and how long it waits for something to claim.
struct Claimant<'a> {
    server: &'a Server,
    asked: &'a RequestContext,
    owner: OwnerId,
    lease: Lease,
    within: Duration,
}

pub(crate) async fn acquire(server: &Server, mut asked: RequestContext) -> Result<Reply> {
    // Whoever waits is not in the way of requests.
    drop(asked.slot.take());
    let sent: AcquireClaim = asked.read()?;
    let claimant = Claimant {
        server,
        asked: &asked,
        owner: owner("owner_id", &sent.owner_id)?,
        lease: lease(server, sent.lease_seconds)?,
        within: Duration::from_secs(sent.wait_seconds.unwrap_or_default().min(MAX_WAIT_SECONDS)),
    };
    let taken = match (Resource::parse(&sent.resource_type)?, &sent.resource_id) {
        (Resource::Workorder, Some(id)) => {
            let visible = visible_named(server, &asked, id).await?.steered_by(server, &asked, None)?;
            claimant.named(visible.id()).await?
        }
        (Resource::Workorder, None) => {
            let circle = authorise::circle_of_new(&asked.principal, sent.circle)?;
            let pull = sent.lane.as_deref().map_or(Pull::Anyone, Pull::Lane);
            let limit = sent.lane.as_deref().and_then(|lane| server.daemon.pulls().limit_of(lane));
            let lane = PulledLane { name: Arc::from(pull.lane(circle.as_deref())), limit };
            claimant.oldest_of(vec![lane]).await?
        }
        (Resource::Event, Some(id)) => claimant.named(&event::visible(server, &asked, id).await?).await?,
        (Resource::Event, None) => {
            let circle = authorise::circle_of_new(&asked.principal, sent.circle)?;
            match event::lanes(server, &sent.event_types, circle.as_deref())? {
                Some(lanes) => claimant.oldest_of(lanes).await?,
                None => claimant.kept(claimant.next_event(circle).await?).await?,
            }
        }
    };
    let claim = taken.map(|taken| record(&taken.id, &taken.claim));
    Ok(Reply::json(&ClaimAnswer { claim }))
}

impl Claimant<'_> {
    /// One by its id, if it waits for someone and nobody holds it.
    async fn named(&self, id: &RecordId) -> Result<Option<Taken>> {
        let server = self.server;
        let over_at = Instant::now() + self.within;
        let mut closing = server.closing.subscribe();
        let taken = loop {
            let mut watched = server.daemon.changes().watch(id);
            let error = match server.daemon.pulls().take_named(id, self.owner.clone(), self.lease).await {
                Ok(taken) => break taken,
                Err(error) => error,
            };
            // A claim ends without a fact when it is given back, or when its time is over: it is looked for again and again.
            let is_held = matches!(
                error,
                EngineError::Store(StoreError::ClaimHeld) | EngineError::Refused(Refusal::ClaimHeld)
            );
            if !is_held || over_at <= Instant::now() || *closing.borrow() {
                return Err(of_engine_claim(&error, id.as_str()));
            }
            tokio::select! {
                _ = watched.next() => {}
                () = tokio::time::sleep_until(over_at.min(Instant::now() + LOOK_EVERY)) => {}
                _ = closing.wait_for(|closing| *closing) => {}
            }
        };
        self.kept(Some(taken)).await
    }

    /// The oldest of these lanes, as soon as there is one.
    async fn oldest_of(&self, lanes: Vec<PulledLane>) -> Result<Option<Taken>> {
        let pulls = self.server.daemon.pulls();
        let taken = if self.within.is_zero() {
            pulls.take_now(&self.owner, &lanes).await
        } else {
            let taken = pulls.take(self.owner.clone(), lanes);
            Patience::new(self.server, self.within).wait_for(taken).await.transpose()
        };
        let taken = taken.map_err(|error: EngineError| of_engine(&error, ""))?;
        let Some(taken) = self.kept(taken).await? else { return Ok(None) };
        if self.lease == pulls.lease() {
            return Ok(Some(taken));
        }
        let renewed = pulls.renew(&taken.id, taken.claim.fence(), self.lease).await;
        let claim = renewed.map_err(|error| of_claim(&error))?;
        Ok(Some(Taken { claim, ..taken }))
    }

    /// What was taken, which is given back if the token was revoked during the wait.
    async fn kept(&self, taken: Option<Taken>) -> Result<Option<Taken>> {
        let held = taken.map(|taken| self.server.daemon.pulls().held(taken));
        if !self.within.is_zero() {
            self.server.check_still_admits(&self.asked.principal).await?;
        }
        Ok(held.map(Held::keep))
    }
}

fn of_engine_claim(error: &EngineError, id: &str) -> Problem {
    if let EngineError::Store(error) = error {
        return of_claim(error);
    }
    if let EngineError::Refused(Refusal::NotRunnable { state }) = error {
        return ProblemCode::Refused.because(format!(
            "it is {state}, or its executor does it: only what waits for someone to pull it can be claimed"
        ));
    }
    of_engine(error, id)
}

pub(crate) async fn renew(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: SwapClaim = asked.read()?;
    let fence = fence(&sent)?;
    let id = named(server, &asked, &fence).await?;
    let lease = lease(server, sent.lease_seconds)?;
    let renewed = server.daemon.pulls().renew(&id, fence, lease).await;
    let renewed = renewed.map_err(|error| of_claim(&error))?;
    Ok(Reply::json(&ClaimAnswer { claim: Some(record(&id, &renewed)) }))
}

pub(crate) async fn release(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: SwapClaim = asked.read()?;
    let fence = fence(&sent)?;
    let id = named(server, &asked, &fence).await?;
    // It changes nothing here, but what cannot be a lease is a mistake of its sender.
    lease(server, sent.lease_seconds)?;
    let released = server.daemon.pulls().release(&id, fence).await;
    released.map_err(|error| of_claim(&error))?;
    as_it_is(server, &id).await
}

/// The claim on a resource as it is now.
async fn as_it_is(server: &Server, id: &RecordId) -> Result<Reply> {
    let loaded = server.load(id).await?;
    let claim = loaded.and_then(|loaded| loaded.claim).map(|claim| record(id, &claim));
    Ok(Reply::json(&ClaimAnswer { claim }))
}

/// The resource that the path names, if its caller may change it, or holds this claim on it.
async fn named(server: &Server, asked: &RequestContext, fence: &Fence) -> Result<RecordId> {
    match Resource::parse(&asked.id)? {
        Resource::Workorder => {
            if let Some(id) = held_private_job(server, asked, fence).await? {
                return Ok(id);
            }
            let visible = visible_named(server, asked, &asked.name).await?.steered_by(server, asked, None)?;
            Ok(visible.id().clone())
        }
        Resource::Event => event::visible(server, asked, &asked.name).await,
    }
}

/// A private job that the path names and the caller claimed: a claim of the next job of a lane may lead to one of somebody else.
async fn held_private_job(
    server: &Server,
    asked: &RequestContext,
    fence: &Fence,
) -> Result<Option<RecordId>> {
    let Ok(id @ RecordId::Job(_)) = RecordId::parse(&asked.name) else { return Ok(None) };
    let loaded = server.store().load(&id).await.map_err(of_store)?;
    let is_held = loaded.is_some_and(|loaded| {
        let claim = loaded.claim.filter(|claim| claim.is_live(server.now()));
        let job = job_of(&loaded.record);
        job.spec.is_private()
            && authorise::sees(&asked.principal, job.spec.circle.as_deref())
            && claim.is_some_and(|claim| claim.fence() == *fence)
    });
    Ok(is_held.then_some(id))
}

fn fence(sent: &SwapClaim) -> Result<Fence> {
    Ok(Fence { owner: owner("owner_id", &sent.owner_id)?, claim_version: sent.claim_version })
}

/// The owner of a claim from outside, as the store knows it.
pub(crate) fn owner(field: &'static str, id: &str) -> Result<OwnerId> {
    if id.is_empty() || id.chars().count() > MAX_OWNER_CHARS {
        let told = format!("an owner's id has 1 to {MAX_OWNER_CHARS} characters");
        return Err(at_field(field, "invalid_value", told));
    }
    Ok(OwnerId::outside(id))
}

/// Refuses a report beside a claim that someone holds on work that was never dispatched.
pub(crate) fn check_unclaimed(claim: Option<&Claim>, now: Timestamp) -> Result<()> {
    match claim.filter(|claim| claim.is_live(now)).and_then(|claim| claim.owner.outside_name()) {
        Some(holder) => {
            Err(ProblemCode::LeaseHeld.because(format!("{holder} has claimed it; report under the claim")))
        }
        None => Ok(()),
    }
}

fn lease(server: &Server, seconds: Option<u32>) -> Result<Lease> {
    let Some(seconds) = seconds else { return Ok(server.daemon.pulls().lease()) };
    Lease::new(seconds, (seconds / 3).max(1)).map_err(|_| {
        let (shortest, longest) = Lease::BOUNDS_SECONDS;
        at_field("lease_seconds", "invalid_value", format!("a lease has {shortest} to {longest} seconds"))
    })
}

fn record(id: &RecordId, claim: &Claim) -> ClaimRecord {
    ClaimRecord {
        resource_type: if id.as_event().is_some() { EVENT } else { WORKORDER }.to_owned(),
        resource_id: id.as_str().to_owned(),
        owner_id: claim.owner.outside_name().unwrap_or(claim.owner.as_str()).to_owned(),
        lease_expires_at: clock_text::text(claim.lease_expires_at),
        heartbeat_at: clock_text::text(claim.heartbeat_at),
        claim_version: claim.claim_version,
    }
}

/// Whoever came too late, or holds another version, is told so; nothing was changed.
fn of_claim(error: &StoreError) -> Problem {
    if *error == StoreError::ClaimHeld {
        return ProblemCode::LeaseHeld.because("someone else holds it; go on with the next");
    }
    if *error == StoreError::Fenced {
        let told = "the claim is not this owner's any more, or has another version";
        return ProblemCode::ClaimLost.because(told);
    }
    of_store(error)
}
