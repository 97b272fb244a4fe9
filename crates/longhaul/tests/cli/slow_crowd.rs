//! Five thousand clients that are slow or silent at the same time, in the middle of whatever one can be in the middle of: whoever asks in
//! the meantime is answered, the daemon needs little room for them, and each loses its connection in the end.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::client::{Client, token_of};
use crate::given::{Daemon, MIB, verify};

const CLIENTS: usize = 5_000;
/// Creates and lists of whoever is in no hurry to be slow.
const ASKED: usize = 400;
/// Each of those is answered within this, whatever else the machine does.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// By how much the daemon may grow: some twenty KiB for a connection, and what those who ask need.
const MOST_GROWTH: u64 = 128 * MIB;
/// And how many threads more it may have: far fewer than there are clients.
const MOST_THREADS: usize = CLIENTS / 10;
/// Longer than any of them is waited for.
const ALL_ARE_CUT_WITHIN: Duration = Duration::from_secs(90);

/// What a client has sent when it falls silent.
fn beginnings(token: &str) -> [String; 5] {
    let head = |line: &str| format!("{line}\r\nhost: test\r\nauthorization: Bearer {token}\r\n");
    [
        String::new(),
        "GET /jo".to_owned(),
        head("GET /jobs HTTP/1.1"),
        head("POST /jobs HTTP/1.1") + "content-type: application/json\r\ncontent-length: 100000\r\n\r\n{",
        head("POST /jobs HTTP/1.1")
            + "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
    ]
}

/// As many files as this process may have.
fn raise_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("it is no more than may be");
    // With half of its connections taken the daemon is in a hurry.
    let enough = maximum.is_none_or(|most| most > 3 * CLIENTS as u64);
    assert!(enough, "the limit of open files is {maximum:?}: raise it (ulimit -Hn)");
}

/// How long each answer took, shortest first.
fn ask(client: &mut Client, round: &str) -> Vec<Duration> {
    let mut took: Vec<Duration> = (0..ASKED)
        .map(|number| {
            let began = Instant::now();
            let told = if number.is_multiple_of(2) {
                client.create(&format!("{round}-{number}"), r#"{"title":"in between"}"#)
            } else {
                client.get("/jobs?limit=1")
            };
            let told = told.expect("whoever asks is answered");
            assert_eq!(told.status, 200, "{}", told.body);
            began.elapsed()
        })
        .collect();
    took.sort();
    took
}

/// Whether the daemon has had enough of a client; what it says with that is heard.
fn is_cut(stream: &mut TcpStream) -> bool {
    let mut some = [0; 4_096];
    loop {
        match stream.read(&mut some) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// How many threads the daemon has.
fn threads(daemon: &Daemon) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("it lives").count()
}

// conforms: O121
#[test]
fn five_thousand_slow_clients_keep_nobody_from_being_answered_and_are_cut_in_the_end() {
    raise_limit();
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let token = token_of(dir.path());
    let mut client = Client::connect(&daemon, &token).unwrap();
    ask(&mut client, "warm");
    let alone = ask(&mut client, "alone");
    let (before, threads_before) = (daemon.begin_peak(), threads(&daemon));
    let beginnings = beginnings(&token);
    let began = Instant::now();
    let mut slow: Vec<TcpStream> = (0..CLIENTS)
        .map(|number| {
            let mut stream = TcpStream::connect(daemon.url.trim_start_matches("http://")).unwrap();
            stream.write_all(beginnings[number % beginnings.len()].as_bytes()).unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    let opened = began.elapsed();
    let held = slow.iter_mut().map(is_cut).filter(|is_cut| !is_cut).count();
    let beside = ask(&mut client, "beside");
    let more_threads = threads(&daemon).saturating_sub(threads_before);
    let (held_for, growth) = (began.elapsed(), daemon.peak_bytes().saturating_sub(before));
    let at = |took: &[Duration], percent: usize| took[took.len() * percent / 100];
    println!(
        "{held} slow clients came in {opened:.1?} and were held for {held_for:.1?}, the daemon grew by {} KiB; answers of others alone p50 {:.1?} p99 {:.1?}, beside \
         them p50 {:.1?} p99 {:.1?}",
        growth / 1_024,
        at(&alone, 50),
        at(&alone, 99),
        at(&beside, 50),
        at(&beside, 99)
    );
    assert_eq!(held, CLIENTS, "too few were there at once for this to prove anything");
    assert!(*beside.last().unwrap() < ANSWERED_WITHIN, "somebody waited for {:?}", beside.last());
    assert!(growth <= MOST_GROWTH, "the daemon grew by {growth} bytes");
    assert!(more_threads <= MOST_THREADS, "the daemon has {more_threads} threads more");
    while !slow.is_empty() {
        assert!(began.elapsed() < ALL_ARE_CUT_WITHIN, "{} clients still have their connection", slow.len());
        slow.retain_mut(|stream| !is_cut(stream));
        std::thread::sleep(Duration::from_millis(100));
    }
    // Meanwhile it asked for nothing, and lost its own.
    client = Client::connect(&daemon, &token).unwrap();
    ask(&mut client, "afterwards");
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
    drop(daemon);
    verify(dir.path());
}
