//! Creates that are repeated, many at once under each key, while the daemon is killed again and again: one job per key, and one answer,
//! byte for byte, whoever hears it and whenever.
//!
//! `LONGHAUL_KEYS` says how many keys; every hundred of them meet one kill.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::client::{Client, Told, token_of};
use crate::given::{Daemon, expect, longhaul, verify};

const KEYS: usize = 1_000;
const KEYS_PER_KILL: usize = 100;
/// Clients that ask for the same at the same time.
const AT_ONCE: usize = 64;

/// What was heard under each key: the first answer, and how often it was heard.
struct Heard {
    first: Vec<Mutex<Option<String>>>,
    answers: AtomicUsize,
    unanswered: AtomicUsize,
}

impl Heard {
    fn hear(&self, key: usize, Told { status, body, .. }: Told) {
        assert_eq!(status, 200, "{body}");
        let mut first = self.first[key].lock().expect("nobody panics with it");
        let known = first.get_or_insert_with(|| body.clone());
        assert_eq!(*known, body, "the key {key} has two answers");
        drop(first);
        self.answers.fetch_add(1, Ordering::SeqCst);
    }
}

/// Each of these keys asked for by everybody at the same time, until all have an answer or the daemon is gone. Everybody begins
/// with what was not answered before.
fn ask_for(daemon: &Daemon, token: &str, keys: &[usize], heard: &Heard, left: &[Mutex<Vec<usize>>]) {
    std::thread::scope(|scope| {
        for left in left {
            scope.spawn(move || {
                let mut left = left.lock().expect("it is this client's own");
                left.extend(keys);
                let Ok(mut client) = Client::connect(daemon, token) else { return };
                while let Some(key) = left.first().copied() {
                    let Ok(told) = client.create(&format!("key-{key}"), &titled(&format!("job {key}")))
                    else {
                        heard.unanswered.fetch_add(1, Ordering::SeqCst);
                        return;
                    };
                    heard.hear(key, told);
                    left.remove(0);
                }
            });
        }
    });
}

fn titled(title: &str) -> String {
    format!(r#"{{"title":"{title}"}}"#)
}

fn ids_of(dir: &Path) -> Vec<String> {
    let facts = expect(0, &longhaul(dir, &["export", "facts"]));
    let created = facts.lines().filter(|line| line.contains(r#""job.created/1""#));
    let id = |line: &str| {
        let fact: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        fact["stream"].as_str().expect("it has a stream").to_owned()
    };
    created.map(id).collect()
}

#[test]
fn thousand_keys_that_many_use_at_once_while_the_daemon_is_killed_are_a_thousand_jobs_and_answers() {
    let keys = std::env::var("LONGHAUL_KEYS").map_or(KEYS, |keys| keys.parse().expect("it is a number"));
    let dir = tempfile::tempdir().expect("there is room");
    let heard = Heard {
        first: (0..keys).map(|_| Mutex::default()).collect(),
        answers: AtomicUsize::new(0),
        unanswered: AtomicUsize::new(0),
    };
    let left: Vec<Mutex<Vec<usize>>> = (0..AT_ONCE).map(|_| Mutex::default()).collect();
    let numbers: Vec<usize> = (0..keys).collect();
    let mut kills = 0;
    for (round, some) in numbers.chunks(KEYS_PER_KILL).enumerate() {
        let daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
        let token = token_of(dir.path());
        // Somewhere in the round, and always before its end.
        let until = heard.answers.load(Ordering::SeqCst) + some.len() * AT_ONCE * (round % 7 + 1) / 9;
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| ask_for(&daemon, &token, some, &heard, &left));
            while heard.answers.load(Ordering::SeqCst) < until && !asking.is_finished() {
                std::thread::yield_now();
            }
            daemon.signal(rustix::process::Signal::KILL);
        });
        kills += 1;
    }
    let unanswered = heard.unanswered.load(Ordering::SeqCst);
    // What had no answer is asked for again, and then everything once more by one who was never there.
    let daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let token = token_of(dir.path());
    ask_for(&daemon, &token, &[], &heard, &left);
    assert!(left.iter().all(|left| left.lock().expect("it is ours").is_empty()));
    let mut late = Client::connect(&daemon, &token).expect("it listens");
    for key in 0..keys {
        let told = late.create(&format!("key-{key}"), &titled(&format!("job {key}"))).expect("it answers");
        heard.hear(key, told);
        if key.is_multiple_of(50) {
            let told = late.create(&format!("key-{key}"), &titled("another job")).expect("it answers");
            let Told { status, body, .. } = told;
            assert!(status == 409 && body.contains("idempotency_key_reused"), "{status} {body}");
        }
    }
    let mut ids = ids_of(dir.path());
    ids.sort();
    let mut told: Vec<String> = heard
        .first
        .iter()
        .map(|first| {
            let first = first.lock().expect("it is ours").clone().expect("each key was answered");
            let answer: serde_json::Value = serde_json::from_str(&first).expect("it is JSON");
            answer["job_id"].as_str().expect("it has an id").to_owned()
        })
        .collect();
    told.sort();
    assert_eq!(ids, told, "the jobs that are there are those that were told of, and no others");
    verify(dir.path());
    println!(
        "{keys} keys, {} answers, {kills} kills, {unanswered} without an answer",
        heard.answers.load(Ordering::SeqCst)
    );
    assert!(
        unanswered >= kills * AT_ONCE / 4,
        "too few were cut off for this to prove anything: {unanswered}"
    );
}
