//! A daemon and the slow service by one clock that is moved by hand, a connector for every manner, and somebody who takes callbacks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::operation::{Operation, OperationFact};
use domain::policy::HostPolicy;
use domain::{JobId, OperationId, RecordId, RecordKind, Timestamp};
use engine::{Clock, Daemon, ManualClock};
use executors::http::CallbackUrls;
use slow_service::{HandClock, Manner, Measures, Options, SlowService};
use store::MemoryStore;
use tokio::sync::mpsc;

use crate::service::{Service, reply};
use crate::world::World;

/// Where the service's clock begins.
const BEGIN: Timestamp = Timestamp::from_seconds(1_767_225_600);
/// What one step brings about takes no longer.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What the host grants to every kind of the zoo.
pub const TTL_SECONDS: u64 = 90;
pub const MAX_RETRY_SECONDS: u32 = 30;
pub const MAX_POLLS: u32 = 100;

pub struct Zoo {
    pub world: World,
    pub service: SlowService,
    hand: HandClock,
}

struct Addresses(SocketAddr);

impl CallbackUrls for Addresses {
    fn url_for(&self, operation: &OperationId) -> Option<String> {
        Some(format!("http://{}/{operation}", self.0))
    }
}

/// The kind under which a manner is asked; some are there twice, under another policy.
pub fn kind(manner: Manner) -> String {
    manner.name().replace('_', "-")
}

/// A connector of the slow service by this name, with more in its policy.
pub fn connector(service: &SlowService, name: &str, more: &str) -> String {
    let address = service.url().replace("http://", "");
    let recipe = include_str!("../../../../../examples/connectors/slow-service.yaml");
    let policy = format!(
        "policy: {{ max_ttl_seconds: {TTL_SECONDS}, max_retry_after_seconds: {MAX_RETRY_SECONDS}, \
         max_attempts: {MAX_POLLS}{more} }}\n"
    );
    recipe.replace("127.0.0.1:8099", &address).replace("name: slow-service", &format!("name: {name}"))
        + &policy
}

/// The slow service with animals of a size that a test can hold.
pub async fn service(hand: &HandClock) -> SlowService {
    let measures = Measures {
        drip: Duration::from_millis(50),
        slow: Duration::from_secs(30),
        hang: Duration::from_mins(10),
        bomb_bytes: 256 << 10,
        huge_body_bytes: 1 << 20,
        ..Measures::small()
    };
    let options = Options { clock: hand.clock(), measures, ..Options::default() };
    SlowService::start(options).await.unwrap()
}

impl Zoo {
    /// With a connector by each of these names, and more in its policy.
    pub async fn open(kinds: &[(String, &str)]) -> Self {
        let hand = HandClock::new();
        let service = service(&hand).await;
        let connectors: Vec<_> = kinds.iter().map(|(name, more)| connector(&service, name, more)).collect();
        let (tell, callbacks) = mpsc::unbounded_channel();
        let listener = Service::start(move |asked| {
            let operation = OperationId::new(asked.path.trim_start_matches('/'));
            let _ = tell.send((operation, asked.body.clone().into_bytes().into()));
            reply(204, "")
        });
        let clock = Arc::new(ManualClock::at(BEGIN));
        let addresses: Arc<dyn CallbackUrls> = Arc::new(Addresses(listener.address));
        let world = World::of_many(
            Arc::new(MemoryStore::new()),
            clock,
            &connectors,
            HostPolicy::default(),
            Some(addresses),
        );
        tokio::spawn(hear(callbacks, world.daemon.clone()));
        Self { world, service, hand }
    }

    pub async fn create(&self, kind: &str, input: &serde_json::Value) -> JobId {
        self.world.create_for(kind, &input.to_string(), 3).await
    }

    /// A second goes by, and whatever it brings about happens.
    pub async fn second(&self) {
        self.second_for(|_| true).await;
    }

    /// A second goes by, and whatever it brings about for these records happens.
    pub async fn second_for(&self, counts: impl Fn(&RecordId) -> bool) {
        self.hand.advance(Duration::from_secs(1));
        self.world.clock.advance_seconds(1);
        self.settle(counts).await;
    }

    /// Waits until nothing that was due to records for which `counts` holds is left to do.
    pub async fn settle(&self, counts: impl Fn(&RecordId) -> bool) {
        let begin = Instant::now();
        loop {
            let left = self.left(&counts);
            if left.is_empty() {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "never done: {left:?}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    fn left(&self, counts: impl Fn(&RecordId) -> bool) -> Vec<RecordId> {
        left(&self.world, counts)
    }

    /// Every operation, whatever its job.
    pub fn operations(&self) -> Vec<Operation> {
        self.world.store.inspect(|tables| {
            let operations = tables.views.values().filter_map(|record| record.as_operation().cloned());
            operations.collect()
        })
    }

    /// What happened to operations, and when.
    pub fn facts(&self) -> Vec<(OperationId, Timestamp, OperationFact)> {
        self.world.store.inspect(|tables| {
            let facts = tables.facts.values().filter_map(|stored| {
                let (id, fact) = (stored.stream.as_operation()?, stored.fact.as_operation()?);
                Some((id.clone(), stored.at, fact.clone()))
            });
            facts.collect()
        })
    }

    /// Nothing that the daemon asked or will ask leaves the host's bounds.
    pub fn assert_within_the_bounds(&self) {
        let shortest = 1_000_000;
        let longest = i64::from(MAX_RETRY_SECONDS) * 1_000_000;
        let longest_after_errors = 60_000_000;
        for (id, at, fact) in self.facts() {
            if let OperationFact::Polled(polled) = &fact {
                let wait = polled.next_poll_at.micros() - at.micros();
                let most = if polled.error.is_some() { longest_after_errors } else { longest };
                assert!((shortest..=most).contains(&wait), "{id} is asked again after {wait} µs");
            }
        }
        for operation in self.operations() {
            let life = operation.expires_at.micros() - operation.dispatched_at.micros();
            assert!(life <= i64::try_from(TTL_SECONDS).unwrap() * 1_000_000, "{operation:?}");
            assert!(operation.polls <= MAX_POLLS, "{operation:?}");
        }
    }

    /// Everything that was accepted is over, five seconds after its life at the latest.
    pub fn assert_over_in_time(&self) {
        for operation in self.operations() {
            let ended = operation.ended.as_ref().unwrap_or_else(|| panic!("not over: {operation:?}"));
            assert!(ended.at <= operation.expires_at.plus_seconds(5), "{operation:?}");
            let job = self.world.job(&operation.link.job_id);
            assert!(job.state.name().is_terminal(), "{job:?}");
        }
        let open = self.left(|id| id.kind() == RecordKind::Operation);
        assert!(open.is_empty(), "{open:?}");
    }
}

/// What services have called back with reaches the daemon, which may wait for a later second before it answers: the end of the work is
/// what counts.
async fn hear(mut callbacks: mpsc::UnboundedReceiver<(OperationId, Arc<[u8]>)>, daemon: Arc<Daemon>) {
    while let Some((operation, body)) = callbacks.recv().await {
        let daemon = daemon.clone();
        tokio::spawn(async move {
            let _ = daemon.called_back(&operation, body).await;
        });
    }
}

/// Waits until nothing that was due is left to do.
pub async fn settle(world: &World) {
    let begin = Instant::now();
    while let left @ [_, ..] = &left(world, |_| true)[..] {
        assert!(begin.elapsed() < PATIENCE, "never done: {left:?}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// What is due and not done, or under way.
fn left(world: &World, counts: impl Fn(&RecordId) -> bool) -> Vec<RecordId> {
    let now = world.clock.now();
    world.store.inspect(|tables| {
        let busy = tables.agenda.iter().filter(|(id, row)| {
            counts(id) && (row.held || row.ready || row.due_at.is_some_and(|due| due <= now))
        });
        busy.map(|(id, _)| id.clone()).collect()
    })
}
