//! A daemon that comes back and finds everything due: it asks no more at once than the host grants.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::job::JobStateName;
use domain::operation::ReportedStatus;
use domain::policy::HostPolicy;
use engine::ManualClock;
use executors::http::Transport;
use executors::outbound::{Answer, Outbound, OutboundError, OutboundLimits, OutboundRequest, OutboundRules};
use futures::future::BoxFuture;
use serde_json::json;
use slow_service::HandClock;
use store::MemoryStore;

use super::given::{connector, service, settle};
use crate::world::{World, parsed};

const KINDS: usize = 12;
const EACH: usize = 15;
/// Each question takes a moment, so that many are under way.
const MOMENT: Duration = Duration::from_millis(10);

/// What is under way, by kind, and the most that ever was: of one kind, and of all.
#[derive(Default)]
struct UnderWay {
    now: BTreeMap<usize, usize>,
    most_of_one: usize,
    most: usize,
}

struct Counting {
    kind: usize,
    outbound: Outbound,
    under_way: Arc<Mutex<UnderWay>>,
}

impl Transport for Counting {
    fn send(
        &self,
        request: OutboundRequest,
        limits: OutboundLimits,
    ) -> BoxFuture<'_, Result<Answer, OutboundError>> {
        Box::pin(async move {
            let _one = One::begun(self);
            tokio::time::sleep(MOMENT).await;
            Transport::send(&self.outbound, request, limits).await
        })
    }
}

/// One question, until it is answered or given up.
struct One<'a>(&'a Counting);

impl<'a> One<'a> {
    fn begun(counting: &'a Counting) -> Self {
        let mut under_way = counting.under_way.lock().unwrap();
        *under_way.now.entry(counting.kind).or_default() += 1;
        under_way.most_of_one = under_way.most_of_one.max(under_way.now[&counting.kind]);
        under_way.most = under_way.most.max(under_way.now.values().sum());
        Self(counting)
    }
}

impl Drop for One<'_> {
    fn drop(&mut self) {
        *self.0.under_way.lock().unwrap().now.entry(self.0.kind).or_default() -= 1;
    }
}

// conforms: O82
#[test]
fn a_daemon_that_finds_everything_due_asks_no_more_at_once_than_the_host_grants() {
    let services =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let hand = HandClock::new();
    let service = services.block_on(service(&hand));
    let clock = Arc::new(ManualClock::at(domain::Timestamp::from_seconds(1_767_225_600)));
    let store = Arc::new(MemoryStore::new());
    let process = |under_way: &Arc<Mutex<UnderWay>>| {
        let connectors = (0..KINDS).map(|kind| {
            let file = parsed(
                &connector(&service, &format!("kind-{kind}"), "")
                    .replace("max_ttl_seconds: 90", "max_ttl_seconds: 86400"),
            );
            let rules = OutboundRules { allow: file.allowed().to_vec(), ..OutboundRules::default() };
            let outbound = Outbound::new(rules).unwrap();
            let counting = Counting { kind, outbound, under_way: under_way.clone() };
            (file, Arc::new(counting) as Arc<dyn Transport>)
        });
        let (store, clock) = (store.clone(), clock.clone());
        World::over(store, clock, connectors.collect(), HostPolicy::default(), None)
    };
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();

    let first = runtime();
    let jobs = first.block_on(async {
        let world = process(&Arc::default());
        let mut jobs = Vec::new();
        for number in 0..KINDS * EACH {
            let input = json!({ "seconds": 100_000, "steps": 10_000 }).to_string();
            jobs.push(world.create_for(&format!("kind-{}", number % KINDS), &input, 1).await);
        }
        for job in &jobs {
            world.until_state(job, JobStateName::AwaitingExternal).await;
        }
        jobs
    });
    // It is dead, and everything is due when the next one comes.
    drop(first);
    clock.advance_seconds(3_600);
    hand.advance(Duration::from_hours(1));
    let under_way = Arc::new(Mutex::new(UnderWay::default()));
    runtime().block_on(async {
        let world = process(&under_way);
        let is_asked = |job| world.operation(job).reported == ReportedStatus::Running;
        settle(&world).await;
        while !jobs.iter().all(is_asked) {
            // Those that found no place were put off a little.
            world.clock.advance_seconds(1);
            settle(&world).await;
        }
    });
    let under_way = under_way.lock().unwrap();
    let policy = HostPolicy::default();
    assert_eq!(under_way.most_of_one, policy.for_all().max_concurrent_polls_per_module as usize);
    assert!(under_way.most <= policy.max_concurrent_polls_total.0 as usize, "{}", under_way.most);
    assert!(under_way.most > policy.max_concurrent_polls_total.0 as usize / 2, "{}", under_way.most);
}
