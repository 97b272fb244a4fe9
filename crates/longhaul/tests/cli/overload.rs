//! More clients than the daemon has places for, twice and five times as many, none of whom waits when it is sent away: each request is
//! either accepted, and then its job is there and is done, or refused in form with a time to come back, and then nothing was made of it.
//! The daemon's memory does not grow with what it refuses.
//!
//! `LONGHAUL_OVERLOAD_SECONDS` says how long each of them lasts. How much of the peak is left meanwhile is told by the bench of the daemon.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::client::{Client, token_of};
use crate::given::{Daemon, MIB, verify};

const SECONDS: u64 = 3;
/// Requests that are carried out at the same time.
const PLACES: usize = 256;
const TIMES: [usize; 2] = [2, 5];
/// By how much the daemon may grow, however long it lasts: connections, what was written last, the pages of the store.
const MOST_GROWTH: u64 = 256 * MIB;

/// What the clients were told.
#[derive(Default)]
struct Told {
    accepted: Vec<String>,
    refused: usize,
}

/// Asks for one job after the other until time is over.
fn ask(daemon: &Daemon, token: &str, name: &str, over: &AtomicBool) -> Told {
    let mut told = Told::default();
    let mut client = Client::connect(daemon, token).expect("there is room for its connection");
    while !over.load(Ordering::Relaxed) {
        let key = format!("{name}-{}-{}", told.accepted.len(), told.refused);
        let answer = client.create(&key, r#"{"title":"one of many","executor":"noop"}"#);
        let answer = answer.expect("nobody is left without an answer");
        match answer.status {
            200 => {
                let body: Value = serde_json::from_str(&answer.body).expect("it is JSON");
                told.accepted.push(body["job_id"].as_str().expect("it has an id").to_owned());
            }
            429 | 503 => {
                let after: u64 = answer.retry_after.and_then(|text| text.parse().ok()).expect("it says when");
                assert!(after > 0 && answer.body.contains(r#""code":"#), "{}", answer.body);
                told.refused += 1;
            }
            other => panic!("{other} {}", answer.body),
        }
    }
    told
}

/// The jobs of a store in one state, or in any other.
fn count(dir: &Path, condition: &str) -> usize {
    let store = Connection::open_with_flags(dir.join("longhaul.sqlite"), OpenFlags::SQLITE_OPEN_READ_ONLY);
    let sql = format!("SELECT count(*) FROM jobs WHERE {condition}");
    let count: i64 = store.and_then(|store| store.query_row(&sql, [], |row| row.get(0))).expect("it is read");
    usize::try_from(count).expect("it is no less than none")
}

fn ids(dir: &Path) -> BTreeSet<String> {
    let store = Connection::open(dir.join("longhaul.sqlite")).expect("it is there");
    let mut statement = store.prepare("SELECT id FROM jobs").expect("there is such a table");
    let ids = statement.query_map([], |row| row.get(0)).expect("it is read");
    ids.map(|id| id.expect("it is text")).collect()
}

#[test]
fn overload_refuses_in_form_and_everything_accepted_is_done() {
    let seconds = std::env::var("LONGHAUL_OVERLOAD_SECONDS").map_or(SECONDS, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let token = token_of(dir.path());
    let mut accepted = BTreeSet::new();
    let before = daemon.begin_peak();
    for times in TIMES {
        let over = AtomicBool::new(false);
        let told: Vec<Told> = std::thread::scope(|scope| {
            let (daemon, token, over) = (&daemon, &token, &over);
            let clients: Vec<_> = (0..times * PLACES)
                .map(|client| scope.spawn(move || ask(daemon, token, &format!("{times}-{client}"), over)))
                .collect();
            std::thread::sleep(Duration::from_secs(seconds));
            over.store(true, Ordering::Relaxed);
            clients.into_iter().map(|client| client.join().expect("it was told in form")).collect()
        });
        let refused: usize = told.iter().map(|told| told.refused).sum();
        let ids: Vec<String> = told.into_iter().flat_map(|told| told.accepted).collect();
        let growth = daemon.peak_bytes().saturating_sub(before);
        println!(
            "{times} times: {} accepted and {refused} refused in {seconds} s, the daemon grew by {} KiB",
            ids.len(),
            growth / 1_024
        );
        assert!(growth <= MOST_GROWTH, "the daemon grew by {growth} bytes");
        let enough = if times == TIMES[1] { PLACES } else { 0 };
        assert!(refused > enough && ids.len() > PLACES, "too little happened for this to prove anything");
        let (asked, count) = (ids.len(), accepted.len());
        accepted.extend(ids);
        assert_eq!(accepted.len(), count + asked, "two were told of the same job");
    }
    let calm = Instant::now();
    while count(dir.path(), "state <> 'completed'") > 0 {
        // As long again is enough for what is left.
        assert!(calm.elapsed() < Duration::from_secs(60 + seconds), "not all that was accepted is done");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
    drop(daemon);
    assert!(ids(dir.path()) == accepted, "the jobs that are there are not those that were accepted");
    verify(dir.path());
}
