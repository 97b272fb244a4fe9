//! Events, and the pipelines that they start: published by clients who say everything until they know, sometimes twice, some
//! under a key that names the same work; and people who stop runs and try failed steps again.

use std::sync::{Arc, OnceLock};

use domain::event::{EventCommand, NewEvent, Origin, Processed, Settler};
use domain::job::{AfterExternal, Job, JobState, JobStateName, Trigger, lane_of_events};
use domain::run::{MAX_CANCELLED, RunCommand};
use domain::{BodyName, EventId, Fence, JobId, OwnerId, Record, RecordId, RunId};
use engine::{
    Emitted, Engine, EngineError, Executors, Order, OrderKey, Outcome, RouteEvents, Standing, Wakes,
};
use pipelines::{Router, event_id_of_key};
use pipelines::{Routes, parse};
use store::{IdempotencyKey, Taken, body_ref};

use crate::api::{Ask, Say, ask, no_or_unknown};
use crate::client::report_as;
use crate::counters::Sometimes;
use crate::heap::SECOND;
use crate::node::Node;
use crate::rng::Rng;
use crate::world::{Sim, World};

/// How often a client asks again when it does not know what came of it.
const MAX_ASKS: usize = 40;
/// How long the key of an event stands for what was done under it, in every pipeline below.
pub const WINDOW_SECONDS: u64 = 120;

/// One after the other, side by side, instead of what failed, in spite of it, from what a step emits, and from an end.
/// What must follow what is written down anew in `invariants/walks.rs`.
const PIPELINES: &str = "
pipelines:
  - name: survey
    on: tide.changed
    dedupe_window: 2m
    steps:
      - { id: measure, uses: builtin, retry: { max_attempts: 2, backoff_seconds: 2 } }
      - id: both
        split:
          - { id: left, uses: builtin }
          - { id: right, uses: outside }
      - { id: sum, uses: builtin, on_error: [{ id: mend, uses: builtin }] }
  - name: watch
    on: tide.changed
    if: { path: payload.level, op: gte, value: 1 }
    dedupe_window: 2m
    steps:
      - { id: look, uses: builtin, on_error: continue }
      - { id: tell, uses: builtin }
  - name: alarm
    on: tide.high
    dedupe_window: 2m
    steps:
      - { id: ring, uses: builtin }
  - name: inquest
    on-hook: job.expired
    steps:
      - { id: ask, uses: builtin, on_error: [{ id: shrug, uses: builtin }] }
";

/// The type of the events that are left to claimants.
const CLAIMED: &str = "tide.claimed";
/// Events of one step that lead to more jobs than one commit asks to stop.
const FLOOD: u32 = 16;
/// Those who claim them.
const CLAIMANTS: u32 = 2;

/// The most steps of them that wait for each other.
pub const STEPS_IN_A_ROW: i64 = 4;

/// An event, as its client names it.
pub struct Publication {
    id: EventId,
    key: IdempotencyKey,
    new: NewEvent,
    payload: Vec<u8>,
}

/// What routes events on one node: the router, and the worker that uses it.
pub struct Routing {
    /// Knows the pipelines.
    pub router: Arc<Router>,
    wakes: Arc<Wakes>,
}

impl Routing {
    /// The routing of a node, and the engine whose ends start what listens to them.
    pub fn on(sim: &Sim, executors: Executors, wakes: &Arc<Wakes>, engine: Engine) -> (Self, Engine) {
        let routes = if sim.with(|world| world.setting.events) == 0 { Routes::default() } else { routes() };
        let following = sim.with(|world| world.setting.following);
        let router = Arc::new(Router::new(executors, routes).following_at_most(following));
        let engine = engine.prepared_by(router.clone()).watched_by(wakes.clone());
        (Self { router, wakes: wakes.clone() }, engine)
    }

    /// The worker, for this owner.
    pub fn worker(self, sim: &Sim, owner: OwnerId, engine: Engine) -> RouteEvents {
        let lease = sim.with(|world| world.setting.lease);
        RouteEvents::new(engine, owner, lease, self.wakes, Standing::alone())
    }
}

/// The events that come with the result of a step.
pub fn emitted_by(world: &mut World, step: Option<&str>) -> Vec<Emitted> {
    match step {
        Some("measure") if world.setting.floods() && world.rng.chance(800) => {
            high_tides(&mut world.rng, FLOOD)
        }
        Some("measure") => draw_emitted(world),
        Some(_) | None => Vec::new(),
    }
}

/// The events that a poll hands over with a result that ends its step.
pub fn emitted_outside(world: &mut World, job: &JobId) -> Vec<Emitted> {
    let job = world.check.record(&job.clone().into()).and_then(Record::as_job);
    let ends_a_step = job.is_some_and(|job| {
        let waits_to_end =
            matches!(job.state, JobState::AwaitingExternal { then: AfterExternal::Finish, .. });
        waits_to_end && job.spec.step.as_ref().is_some_and(|step| step.step == "right")
    });
    if ends_a_step { draw_emitted(world) } else { Vec::new() }
}

fn draw_emitted(world: &mut World) -> Vec<Emitted> {
    let count = world.rng.pick(&[0, 0, 1, 2]);
    high_tides(&mut world.rng, count)
}

fn high_tides(rng: &mut Rng, count: u32) -> Vec<Emitted> {
    let one = |number: u32| Emitted {
        kind: "tide.high".to_owned(),
        payload: format!("{{\"ordinal\":{number}}}").into_bytes(),
        dedupe_key: rng.chance(500).then(|| "bell".to_owned()),
        correlation: None,
    };
    (0..count).map(one).collect()
}

/// What every node knows of.
fn routes() -> Routes {
    static ROUTES: OnceLock<Routes> = OnceLock::new();
    let read = || {
        let loaded = parse(&[("simulated.yaml", PIPELINES)]);
        assert!(loaded.mistakes.is_empty(), "{:?}", loaded.mistakes);
        Routes::new(loaded.pipelines)
    };
    ROUTES.get_or_init(read).clone()
}

/// Starts the clients who publish, each at its own time, and those who meddle with runs.
pub fn start(sim: &Sim) {
    let publications = sim.with(draw_publications);
    if publications.is_empty() {
        return;
    }
    sim.with(|world| world.check.listens());
    for (after, publication) in publications {
        sim.spawn(None, publish_until_known(sim.clone(), after, publication));
    }
    sim.spawn(None, meddle(sim.clone()));
    if sim.with(|world| world.setting.floods()) {
        sim.spawn(None, stop_wide_runs(sim.clone()));
    }
    for number in 0..CLAIMANTS {
        let owner = OwnerId::outside(&format!("claimant-{number}"));
        sim.with(|world| world.owners.insert(owner.clone()));
        sim.spawn(None, claim_and_settle(sim.clone(), owner));
    }
}

/// Claims events that are left to claimants, and settles them: at once, late, or never.
async fn claim_and_settle(sim: Sim, owner: OwnerId) {
    loop {
        sim.doze(SECOND, 10 * SECOND).await;
        let Some(Say::Claimed(event, claim)) = ask(&sim, Ask::ClaimEvent(owner.clone())).await else {
            continue;
        };
        let (gone, late) = sim.with(|world| {
            let lease = world.setting.lease_micros;
            let calm = world.is_calm();
            let late = if world.rng.chance(300) && !calm { 2 * lease } else { lease / 4 };
            (world.rng.chance(200) && !calm, late)
        });
        if gone {
            continue;
        }
        sim.doze(0, late).await;
        for _ in 0..MAX_ASKS {
            match ask(&sim, Ask::SettleEvent(event.clone(), claim.fence())).await {
                Some(Say::Unknown) | None => sim.doze(SECOND / 2, 5 * SECOND).await,
                Some(_) => break,
            }
        }
    }
}

fn draw_publications(world: &mut World) -> Vec<(i64, Arc<Publication>)> {
    let last = world.setting.calm_at - 20 * SECOND;
    let mut publications = Vec::new();
    let (mut after, mut word) = (0, "spring");
    for number in 0..world.setting.events {
        // What names the same work comes about at the same time, or much later.
        let soon = number > 0 && world.rng.chance(500);
        after = if soon {
            (after + world.rng.within(0, 2 * SECOND)).min(last)
        } else {
            world.rng.within(0, last)
        };
        if !soon {
            word = world.rng.pick(&["spring", "neap"]);
        }
        let publication = Arc::new(draw_publication(world, number, word));
        publications.push((after, publication.clone()));
        if world.rng.chance(300) {
            publications.push((after + world.rng.within(0, 10 * SECOND), publication));
        }
    }
    world.busy_clients += publications.len();
    publications
}

fn draw_publication(world: &mut World, number: u32, same_work: &str) -> Publication {
    let rng = &mut world.rng;
    let (principal, route, key) = ("client", "publish_event", format!("event-{number}"));
    let id = event_id_of_key(principal, route, &key);
    let level = rng.below(3);
    let payload = format!("{{\"level\":{level},\"number\":{number}}}").into_bytes();
    let by_name = rng.chance(200);
    let origin = if by_name {
        Origin::Asked { pipeline: rng.pick(&["survey", "watch"]).to_owned(), by: None }
    } else {
        Origin::Published { by: None }
    };
    // Whoever asks for a pipeline by its name gives no key.
    let mut new = NewEvent::new("tide.changed", body_ref(BodyName::Payload, &payload), origin);
    new.dedupe_key = (!by_name && rng.chance(700)).then(|| same_work.to_owned());
    // A pipeline listens to the type; its operator leaves some of these events to claimants all the same.
    if !by_name && rng.chance(200) {
        CLAIMED.clone_into(&mut new.kind);
        new.settled_by = Settler::Claimants;
    }
    if level == 0 {
        world.check.low_tide(id.clone());
    }
    let key = IdempotencyKey { principal: principal.to_owned(), route: route.to_owned(), key };
    Publication { id, key, new, payload }
}

async fn publish_until_known(sim: Sim, after: i64, publication: Arc<Publication>) {
    sim.sleep(after).await;
    for _ in 0..MAX_ASKS {
        match ask(&sim, Ask::Publish(publication.clone())).await {
            Some(Say::Done | Say::No) => break,
            Some(_) | None => sim.doze(SECOND / 2, 5 * SECOND).await,
        }
    }
    sim.with(|world| world.busy_clients -= 1);
}

/// Somebody stops runs and troubles their failed steps, right or wrong.
async fn meddle(sim: Sim) {
    while !sim.with(|world| world.is_calm()) {
        sim.doze(SECOND, 60 * SECOND).await;
        sim.with(|world| {
            let wish = if world.rng.chance(400) { stop_a_run(world) } else { trouble_a_step(world) };
            if let Some(wish) = wish {
                world.send(wish, None);
            }
        });
    }
}

/// Somebody stops runs that have begun more jobs than one commit asks to stop.
async fn stop_wide_runs(sim: Sim) {
    loop {
        sim.doze(SECOND, 4 * SECOND).await;
        sim.with(|world| {
            if let Some(run) = wide_run(world) {
                world.send(Ask::CancelRun(run), None);
            }
        });
    }
}

fn stop_a_run(world: &mut World) -> Option<Ask> {
    let runs: Vec<RunId> = world.check.records().filter_map(run_id).collect();
    if runs.is_empty() { None } else { Some(Ask::CancelRun(runs[world.rng.index(runs.len())].clone())) }
}

fn run_id(record: &Record) -> Option<RunId> {
    record.as_run().map(|run| run.id.clone())
}

fn wide_run(world: &World) -> Option<RunId> {
    let runs = world.check.records().filter_map(Record::as_run);
    let mut wide = runs.filter(|run| run.cancel.is_none() && run.open_jobs().count() > MAX_CANCELLED);
    wide.next().map(|run| run.id.clone())
}

/// A step that has failed is tried again, or its lost attempt says at last that it is done, whatever its run has made of it.
fn trouble_a_step(world: &mut World) -> Option<Ask> {
    let failed: Vec<Job> = world.check.records().filter_map(failed_step).collect();
    if failed.is_empty() {
        return None;
    }
    let job = &failed[world.rng.index(failed.len())];
    match job.last_attempt().map(|attempt| attempt.id.clone()) {
        Some(attempt) if matches!(job.state, JobState::Unavailable { .. }) && world.rng.chance(700) => {
            Some(report_as(world, job, Some(attempt), JobStateName::Completed))
        }
        Some(_) | None => Some(Ask::Run(job.id.clone(), Trigger::Retry)),
    }
}

fn failed_step(record: &Record) -> Option<Job> {
    let job = record.as_job().filter(|job| job.spec.step.is_some())?;
    matches!(job.state, JobState::Failed | JobState::Unavailable { .. }).then(|| job.clone())
}

/// Writes an event down, as the API does: once under its key, and settled at once if it is for one pipeline alone.
pub async fn publish(node: &Node, publication: &Publication) -> Say {
    match node.store().key(&publication.key).await {
        Ok(Some(_)) => return known(node, publication),
        Ok(None) => {}
        Err(_) => return Say::Unknown,
    }
    let mut order = match ordered(node, publication).await {
        Ok(order) => order,
        Err(error) => return no_or_unknown(&error),
    };
    order.keys.push(OrderKey {
        key: publication.key.clone(),
        request_sha256: publication.new.payload.sha256,
        keep_until: node.now().plus_seconds(86_400),
        render: Arc::new(|record| record.id().as_str().into()),
    });
    match node.order(order).await {
        Ok(Outcome::AlreadySo { .. }) | Err(EngineError::KeyTaken(_)) => known(node, publication),
        Ok(Outcome::Changed { .. }) => {
            acknowledge(node, publication);
            Say::Done
        }
        // Nothing was written, or nobody knows: the same event may be published again.
        Err(error) => no_or_unknown(&error),
    }
}

async fn ordered(node: &Node, publication: &Publication) -> Result<Order, EngineError> {
    let Publication { id, new, payload, .. } = publication;
    let (new, payload, actor) = (new.clone(), payload.clone(), node.actor.clone());
    match &new.origin {
        Origin::Asked { .. } => node.router.starting(node.store(), id, new, payload, actor, node.now()).await,
        Origin::Published { .. }
        | Origin::Webhook { .. }
        | Origin::Emitted { .. }
        | Origin::JobEnded { .. } => Ok(Router::publishing(id, new, payload, actor)),
    }
}

fn known(node: &Node, publication: &Publication) -> Say {
    node.sim.with(|world| world.counters.saw(Sometimes::EventToldAgain));
    acknowledge(node, publication);
    Say::Done
}

fn acknowledge(node: &Node, publication: &Publication) {
    let Publication { id, key, new, .. } = publication;
    node.sim.with(|world| {
        let held = world
            .store
            .inspect(|tables| world.check.acknowledge(tables, key, id.clone().into(), new.payload));
        world.require(held);
    });
}

/// Somebody claims the oldest event that is left to claimants.
pub async fn claim(node: &Node, owner: OwnerId) -> Say {
    let lane = lane_of_events(CLAIMED, None);
    let taken = node.store().take_ready(lane.as_str().into(), node.take_for(owner, 1)).await;
    match taken.map(|taken| taken.into_iter().next()) {
        Ok(Some(Taken { id: RecordId::Event(event), claim, .. })) => {
            // Its lease may end; who takes nothing wakes nobody.
            node.will_route();
            Say::Claimed(event, claim)
        }
        Ok(_) => Say::No,
        Err(_) => {
            node.will_route();
            Say::Unknown
        }
    }
}

/// The holder of a claim says what it has made of its event.
pub async fn settle(node: &Node, event: EventId, fence: Fence) -> Say {
    let owner_id = fence.owner.as_str().to_owned();
    let processed = Processed { reason: "SCHEDULED".to_owned(), owner_id, work_order_id: None };
    let command = EventCommand::Process(processed);
    match node.order(Order::new(event, command, node.actor.clone()).under(fence)).await {
        Ok(_) => Say::Done,
        Err(error) => no_or_unknown(&error),
    }
}

/// Stops a run with all that it has begun.
pub async fn cancel_run(node: &Node, run: RunId) -> Say {
    let command = RunCommand::RequestCancel { by: None, reason: "not needed".to_owned() };
    match node.order(Order::new(run, command, node.actor.clone())).await {
        Ok(_) => Say::Done,
        Err(error) => no_or_unknown(&error),
    }
}
