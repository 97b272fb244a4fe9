//! Creates, sent as quickly as is asked for, each under a key, with what was answered.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::given::{Daemon, json as json_of};
use crate::home::Home;

/// Whoever asks for work, at the same time.
const CLIENTS: u32 = 4;
/// Creates of all of them together.
pub const PER_SECOND: u32 = 200;

/// What was answered to each key.
pub type Answers = BTreeMap<String, String>;

pub struct Load {
    over: AtomicBool,
    keys: AtomicUsize,
    /// How many may be sent.
    allowed: AtomicUsize,
    answers: Mutex<Answers>,
}

impl Load {
    pub fn new() -> Self {
        Self {
            over: AtomicBool::new(false),
            keys: AtomicUsize::new(0),
            allowed: AtomicUsize::new(0),
            answers: Mutex::default(),
        }
    }

    /// Runs the work while creates come, and gives what it gives and what they were answered.
    pub fn around<T>(daemon: &Daemon, token: &str, work: impl FnOnce(&Self) -> T) -> (T, Answers) {
        let load = Self::new();
        let done = std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| load.ask_until_over(daemon, token));
            }
            let over = EndsWhenDropped(&load);
            let done = work(&load);
            drop(over);
            done
        });
        (done, load.answers.into_inner().expect("nobody panicked"))
    }

    /// Lets so many more be sent than were sent so far.
    pub fn allow(&self, more: usize) {
        self.allowed.store(self.keys.load(Ordering::SeqCst) + more, Ordering::SeqCst);
    }

    /// How many were accepted so far.
    pub fn accepted(&self) -> usize {
        self.answers.lock().expect("nobody panicked").len()
    }

    fn ask_until_over(&self, daemon: &Daemon, token: &str) {
        let agent = ureq::Agent::new_with_defaults();
        let every = Duration::from_secs(1) * CLIENTS / PER_SECOND;
        let mut next = Instant::now();
        while !self.over.load(Ordering::SeqCst) {
            if self.keys.load(Ordering::SeqCst) < self.allowed.load(Ordering::SeqCst) {
                let number = self.keys.fetch_add(1, Ordering::SeqCst);
                let (key, body) = (format!("key-{number}"), body(number));
                let answered = create(&agent, &daemon.url, token, &key, &body);
                self.answers.lock().expect("nobody panicked").insert(key, answered);
            }
            next += every;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }
}

struct EndsWhenDropped<'a>(&'a Load);

impl Drop for EndsWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

/// Most is over at once; some of it runs for a while, some leaves an artifact, and some waits for somebody.
fn body(number: usize) -> Value {
    match number % 20 {
        0 => json!({ "title": "slow", "executor": "slow", "input": { "seconds": 2 } }),
        1 => json!({ "title": "said", "executor": "command", "input": { "argv": ["echo", "said"] } }),
        2 => json!({ "title": "waits", "prompt": "for somebody" }),
        _ => {
            json!({ "title": "quick", "executor": "noop", "input": { "number": number, "fill": "x".repeat(number % 3_000) } })
        }
    }
}

/// The answer to a create, byte for byte. One whose connection is lost is sent again: the key makes it one.
pub fn create(agent: &ureq::Agent, url: &str, token: &str, key: &str, body: &Value) -> String {
    let send = || {
        let request = ureq::http::Request::post(format!("{url}/jobs"))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .body(body.to_string())
            .expect("it is a request");
        agent.run(request).and_then(|mut answer| answer.body_mut().read_to_string())
    };
    match send() {
        Ok(answer) => answer,
        Err(ureq::Error::StatusCode(status)) => panic!("{key} was answered with {status}"),
        Err(_) => send().expect("the daemon answers"),
    }
}

/// Sends a create of the load again.
pub fn again(daemon: &Daemon, token: &str, key: &str) -> String {
    let number = key.trim_start_matches("key-").parse().expect("it is a number");
    create(&ureq::Agent::new_with_defaults(), &daemon.url, token, key, &body(number))
}

/// A token that may do all of it, known to the store.
pub fn token(home: &Home) -> String {
    let arguments = ["token", "create", "--name", "load", "--role", "admin", "--scope", "exec"];
    json_of(home.path(), &arguments)["secret"].as_str().expect("it has one").to_owned()
}
