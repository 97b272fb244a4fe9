//! A process that dies around the start of work outside, at every point in turn: however often, the service starts it once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use domain::job::{JobState, JobStateName};
use domain::policy::HostPolicy;
use domain::{JobId, Timestamp};
use engine::{CommitWatch, Executors, ManualClock};
use executors::http::Transport;
use executors::outbound::{Answer, Outbound, OutboundError, OutboundLimits, OutboundRequest, OutboundRules};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use slow_service::{HandClock, SlowService};
use store::{Commit, Committed, MemoryStore};

use super::given::{connector, service};
use crate::world::{World, parsed};

/// Jobs whose processes are killed, each at most twice; another number with the variable.
const JOBS: usize = 60;
const JOBS_VARIABLE: &str = "LONGHAUL_ZOO_KILLS";
/// What a life is waited for at most.
const PATIENCE: Duration = Duration::from_secs(30);
const STACK_BYTES: usize = 1 << 20;

/// Where a process dies.
#[derive(Clone, Copy, Debug)]
enum Point {
    /// When its commit of this number is durable, and nobody was told.
    AfterCommit(usize),
    /// With the intent on record and nothing sent.
    BeforeSend,
    /// When the service has taken the work and not answered yet.
    InFlight,
    /// With the answer in its hands and nothing of it on record.
    AfterAnswer,
}

/// Created, dispatched, intended, left outside; and all that is between the last two.
const POINTS: [Point; 7] = [
    Point::AfterCommit(1),
    Point::AfterCommit(2),
    Point::AfterCommit(3),
    Point::AfterCommit(4),
    Point::BeforeSend,
    Point::InFlight,
    Point::AfterAnswer,
];

/// Ends the process where it stands: its only thread never runs again.
struct Reaper {
    point: Option<Point>,
    commits: AtomicUsize,
    told: mpsc::Sender<Life>,
}

#[derive(Debug, PartialEq, Eq)]
enum Life {
    Killed,
    Ended,
}

impl Reaper {
    fn die(&self) -> ! {
        let _ = self.told.send(Life::Killed);
        loop {
            std::thread::park();
        }
    }
}

impl CommitWatch for Reaper {
    fn committed(&self, _: &Commit, _: Committed) {
        let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        if matches!(self.point, Some(Point::AfterCommit(point)) if point == number) {
            self.die();
        }
    }
}

struct Dying {
    outbound: Outbound,
    reaper: Arc<Reaper>,
    service: Arc<SlowService>,
}

impl Transport for Dying {
    fn send(
        &self,
        request: OutboundRequest,
        limits: OutboundLimits,
    ) -> BoxFuture<'_, Result<Answer, OutboundError>> {
        Box::pin(async move {
            if request.method != "POST" {
                return Transport::send(&self.outbound, request, limits).await;
            }
            let before = self.service.starts().len();
            match self.reaper.point {
                Some(Point::BeforeSend) => self.reaper.die(),
                Some(Point::InFlight) => {
                    let answer = Transport::send(&self.outbound, request, limits);
                    tokio::select! {
                        answer = answer => answer,
                        () = taken(&self.service, before) => self.reaper.die(),
                    }
                }
                Some(Point::AfterAnswer) => {
                    let _ = Transport::send(&self.outbound, request, limits).await;
                    self.reaper.die()
                }
                Some(Point::AfterCommit(_)) | None => Transport::send(&self.outbound, request, limits).await,
            }
        })
    }
}

/// Ends when the service has taken one more.
async fn taken(service: &SlowService, before: usize) {
    while service.starts().len() == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// One process on this store until it dies, or until the work is outside.
fn live(
    store: &Arc<MemoryStore>,
    clock: &Arc<ManualClock>,
    service: &Arc<SlowService>,
    point: Option<Point>,
    create: Option<Value>,
) -> Life {
    let (told, life) = mpsc::channel();
    let (store, clock, service) = (store.clone(), clock.clone(), service.clone());
    let process = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let reaper = Arc::new(Reaper { point, commits: AtomicUsize::new(0), told: told.clone() });
            let world = world(store, clock, service, reaper);
            if let Some(input) = create {
                world.create(&input.to_string(), 10).await;
            }
            let job = the_job(&world);
            let is_outside = |world: &World| {
                let state = world.job(&job).state;
                if let JobState::Queued { due_at, .. } = state {
                    world.clock.set(due_at);
                }
                state.name() == JobStateName::AwaitingExternal
            };
            world.until(is_outside).await;
        });
        let _ = told.send(Life::Ended);
    };
    // A killed one is never joined: it stands still for ever, as a dead process does.
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(process).unwrap();
    life.recv_timeout(PATIENCE).expect("a process dies or gets its work outside")
}

fn world(
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    service: Arc<SlowService>,
    reaper: Arc<Reaper>,
) -> World {
    let file = parsed(&connector(&service, "slow", ""));
    let rules = OutboundRules { allow: file.allowed().to_vec(), ..OutboundRules::default() };
    let outbound = Outbound::new(rules).unwrap();
    let mut executors = Executors::default();
    executors.watched_by(reaper.clone());
    let transport: Arc<dyn Transport> = Arc::new(Dying { outbound, reaper, service });
    World::beside(store, clock, vec![(file, transport)], HostPolicy::default(), None, &mut executors)
}

fn the_job(world: &World) -> JobId {
    world
        .store
        .inspect(|tables| tables.views.keys().find_map(|id| id.as_job().cloned()).expect("it was created"))
}

#[test]
fn however_often_a_process_dies_around_the_start_of_work_its_service_starts_it_once() {
    let services =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let service = Arc::new(services.block_on(service(&HandClock::new())));
    let jobs = std::env::var(JOBS_VARIABLE).map_or(JOBS, |jobs| jobs.parse().unwrap());
    let mut kills = [0; POINTS.len()];
    for number in 0..jobs {
        let points = [number % POINTS.len(), number / POINTS.len() % POINTS.len()];
        let in_flight = points.iter().any(|point| matches!(POINTS[*point], Point::InFlight));
        let mut input = json!({ "seconds": 1_000, "result": number });
        if in_flight {
            // The answer to the start takes longer than anybody waits for it.
            input["manner"] = "slow_30s".into();
            input["at"] = "start".into();
            input["bad_answers"] = 1.into();
        }
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_767_225_600)));
        let store = Arc::new(MemoryStore::new());
        let mut create = Some(input);
        for point in points {
            if live(&store, &clock, &service, Some(POINTS[point]), create.take()) == Life::Killed {
                kills[point] += 1;
            }
            // Nobody has heard of it for longer than a lease.
            clock.advance_seconds(61);
        }
        assert_eq!(live(&store, &clock, &service, None, None), Life::Ended);
        let starts = service.starts();
        let of_this = starts.iter().filter(|start| start.input["result"] == number).count();
        assert_eq!(of_this, 1, "killed at {:?}", points.map(|point| POINTS[point]));
    }
    assert_eq!(service.starts().len(), jobs);
    assert!(kills.iter().all(|kills| *kills > 0) && kills.iter().sum::<usize>() > jobs, "{kills:?}");
}
