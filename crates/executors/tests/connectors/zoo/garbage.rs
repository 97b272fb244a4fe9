//! Services that answer with garbage: answers as they should be, damaged at random in their bytes, words, types and headers. However bad
//! they are, nothing panics, every job comes to an end that the host granted, and all that is kept can be kept.
//!
//! `LONGHAUL_ANSWERS` says how many answers are damaged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use domain::policy::HostPolicy;
use domain::{JobId, Json, Record, Timestamp};
use engine::ManualClock;
use executors::http::Transport;
use executors::outbound::{Answer, OutboundError, OutboundLimits, OutboundRequest};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use store::{MemoryStore, encode_view};

use super::given::settle;
use crate::world::{World, parsed};

const ANSWERS: u64 = 10_000;
/// Jobs that are under way together.
const ROUND: usize = 600;
/// Longer than the life of any operation and all of its submits.
const LONGEST_SECONDS: u64 = 150;

const CONNECTOR: &str = r#"
name: press
execution_mode_support: either
secrets: { token: { env: PRESS_TOKEN } }
policy: { max_ttl_seconds: 30, max_attempts: 20, max_retry_after_seconds: 10, max_open_per_module: 1000 }
concurrency: 1000
submit: { url: "https://press.example.com/jobs", body: { $eval: input }, idempotent: true, keep: { more: answer.body.more } }
status: { url: "https://press.example.com/jobs/${operation.id}" }
result: { url: "https://press.example.com/jobs/${operation.id}/result" }
cancel: { method: DELETE, url: "https://press.example.com/jobs/${operation.id}", confirmed: [204] }
read:
  id: answer.body.id
  status: answer.body.state
  progress: answer.body.percent
  progress_text: answer.body.stage
  retry_after: answer.body.again
  fail_after: answer.body.until
  result: answer.body.output
  summary: answer.body.summary
  artifacts: answer.body.files
  error: answer.body.message
  error_code: answer.body.code
  retryable: answer.body.retry
states: { queued: pending, inking: running, done: completed, jammed: failed, stopped: cancelled, late: timed-out, lost: unknown }
"#;

/// Numbers from a seed (`SplitMix64`).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn of<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// Answers of which each comes from its number.
#[derive(Default)]
struct Garbage {
    given: AtomicU64,
}

impl Transport for Garbage {
    fn send(
        &self,
        request: OutboundRequest,
        limits: OutboundLimits,
    ) -> BoxFuture<'_, Result<Answer, OutboundError>> {
        let mut chance = Chance(self.given.fetch_add(1, Ordering::SeqCst));
        let mut body = body(&mut chance);
        // What is longer is cut off on the way, which is tested where that is done.
        body.truncate(limits.body_bytes);
        let status = if chance.below(4) == 0 { chance.of(&STATUSES) } else { 200 };
        let answer = Answer { status, url: request.url, headers: headers(&mut chance), body };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

const STATUSES: [u16; 18] =
    [100, 199, 202, 204, 206, 299, 302, 304, 400, 401, 404, 408, 409, 410, 429, 500, 503, 599];

fn headers(chance: &mut Chance) -> Vec<(String, String)> {
    let values = [
        "99999999999999999999999",
        "-1",
        "",
        "soon",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "1e308",
        "NaN",
        "\u{1}\u{fffd}",
        "https://press.example.com/x",
        "//",
        "http://[::",
        "../../..",
        "data:,x",
    ];
    let names = ["retry-after", "location", "content-type", "content-length", "x-more"];
    (0..chance.below(4)).map(|_| (chance.of(&names).to_owned(), chance.of(&values).to_owned())).collect()
}

/// An answer as it should be, and then not quite.
fn body(chance: &mut Chance) -> Vec<u8> {
    let states =
        ["queued", "inking", "inking", "inking", "done", "jammed", "stopped", "late", "lost", "dreaming"];
    let mut answer = json!({
        "id": "r-1", "state": chance.of(&states), "percent": 40, "stage": "page 2", "again": 2, "until": 30,
        "output": { "pages": 12 }, "summary": "printed", "files": [], "message": "no paper", "code": "jam", "retry": true,
        "more": { "a": 1 },
    });
    for _ in 0..chance.below(4) {
        let names: Vec<String> = answer.as_object().unwrap().keys().cloned().collect();
        let name = chance.of(&names);
        answer[name] = value(chance);
    }
    let mut bytes = answer.to_string().into_bytes();
    match chance.below(10) {
        // It can be read, and is only strange.
        0..=3 => {}
        4 => bytes.truncate(chance.below(bytes.len())),
        5 => {
            for _ in 0..=chance.below(8) {
                let at = chance.below(bytes.len());
                bytes[at] ^= 1 << chance.below(8);
            }
        }
        6 => {
            let at = chance.below(bytes.len());
            bytes.splice(at..at, chance.of(&SCRAPS).iter().copied());
        }
        7 => bytes = (0..chance.below(300)).map(|_| chance.byte()).collect(),
        // The same key twice.
        8 => {
            let text = r#"{"state":"done","output":1,"state":"inking","output":2,"id":"r-1","id":"r-2"}"#;
            bytes = text.as_bytes().to_vec();
        }
        _ => {
            let deep = chance.of(&[200, 10_000, 100_000]);
            let (open, close) = chance.of(&[("[", "]"), ("{\"state\":", "}")]);
            bytes = [open.repeat(deep), "1".to_owned(), close.repeat(deep)].concat().into_bytes();
        }
    }
    bytes
}

/// Bytes that are no text, no JSON, or a surprise in either.
const SCRAPS: [&[u8]; 9] = [
    b"\xff\xfe",
    b"\0",
    b"\\u0000",
    b"\\ud800",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"}{",
    b"\x1b[2J",
];

fn value(chance: &mut Chance) -> Value {
    match chance.below(12) {
        0 => Value::Null,
        1 => true.into(),
        2 => i64::MIN.into(),
        3 => u64::MAX.into(),
        4 => 1e308.into(),
        5 => (-0.0).into(),
        6 => "".into(),
        7 => "\0".into(),
        8 => "\u{202e}\u{1f469}\u{200d}\u{1f469}".repeat(1 + chance.below(2_000)).into(),
        9 => vec![json!({ "a": [] }); chance.below(50)].into(),
        10 => json!({ "": { "a\0b": "x".repeat(chance.below(20_000)) } }),
        // A number longer than any type holds, as it is written.
        _ => serde_json::from_str(&"9".repeat(1 + chance.below(5_000))).unwrap_or_else(|_| "many".into()),
    }
}

/// Everything that is kept can be kept: views are JSON that every store takes, and so are results.
fn check_kept(world: &World) {
    world.store.inspect(|tables| {
        for record in tables.views.values() {
            let view = encode_view(record);
            assert!(!holds_nul(&serde_json::from_str(&view).unwrap()), "{view}");
        }
        for ((record, name, _), bytes) in &tables.bodies {
            if *name == "result" || *name == "artifacts" {
                let text = std::str::from_utf8(bytes).unwrap();
                Json::parse(text).unwrap_or_else(|why| panic!("{record} {name}: {why}"));
            }
        }
    });
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(holds_nul),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains('\0') || holds_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn reasons(world: &World) -> BTreeMap<String, u32> {
    let mut counted = BTreeMap::new();
    world.store.inspect(|tables| {
        for record in tables.views.values() {
            let Record::Job(job) = &**record else { continue };
            let reason = job.state_reason.as_deref().unwrap_or_default();
            *counted.entry(format!("{} {reason}", job.state.name().as_str())).or_default() += 1;
        }
    });
    counted
}

/// What has panicked in the engine. A poll that does ends nothing but its task, and time covers it up.
fn listen_for_panics() -> Arc<Mutex<Vec<String>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (told, before) = (heard.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if panic.location().is_some_and(|location| location.file().contains("engine/src")) {
            told.lock().unwrap().push(panic.to_string());
        }
        before(panic);
    }));
    heard
}

#[tokio::test]
async fn ten_thousand_answers_of_garbage_end_no_process_and_every_job() {
    let panics = listen_for_panics();
    let answers = std::env::var("LONGHAUL_ANSWERS").map_or(ANSWERS, |answers| answers.parse().unwrap());
    let garbage = Arc::new(Garbage::default());
    let mut ends = BTreeMap::<String, u32>::new();
    while garbage.given.load(Ordering::SeqCst) < answers {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_767_225_600)));
        let connectors = vec![(parsed(CONNECTOR), garbage.clone() as Arc<dyn Transport>)];
        let store = Arc::new(MemoryStore::new());
        let world = World::over(store, clock, connectors, HostPolicy::default(), None);
        let mut jobs: Vec<JobId> = Vec::new();
        for number in 0..ROUND {
            jobs.push(world.create(&json!({ "page": number }).to_string(), 2).await);
        }
        for second in 0..LONGEST_SECONDS {
            settle(&world).await;
            if second == 8 {
                // Answers to cancels are garbage too.
                for job in jobs.iter().step_by(5).filter(|job| !world.job(job).state.name().is_terminal()) {
                    world.cancel(job).await;
                }
            }
            world.clock.advance_seconds(1);
        }
        for job in &jobs {
            let job = world.job(job);
            assert!(job.state.name().is_terminal(), "{job:?}");
        }
        check_kept(&world);
        for (end, count) in reasons(&world) {
            *ends.entry(end).or_default() += count;
        }
    }
    println!("{} answers: {ends:#?}", garbage.given.load(Ordering::SeqCst));
    assert_eq!(*panics.lock().unwrap(), Vec::<String>::new());
    let broken = |end: &&String| end.contains("panicked") || end.contains("unexpected_type");
    assert_eq!(ends.keys().find(broken), None);
    // Too much of one thing would prove little.
    let states: std::collections::BTreeSet<&str> =
        ends.keys().filter_map(|end| end.split(' ').next()).collect();
    assert!(states.len() >= 4, "{states:?}");
}
