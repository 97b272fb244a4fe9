//! Five thousand clients that begin a request and never end it: who is there already is served as before, who comes is told or let in
//! within seconds, and the daemon neither panics nor grows.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::given::Daemon;

const SLOW: usize = 5_000;
/// More than there are connections: whoever comes after them costs nothing that lasts.
const FIRST: usize = 1_000;
const ASKED: usize = 300;
/// Below this nobody notices a difference, and the clock of a busy machine makes one.
const UNNOTICED: Duration = Duration::from_millis(50);
/// A silent client loses its place after twenty seconds; in a crowd after two.
const LET_IN_WITHIN: Duration = Duration::from_secs(15);
/// What all who come after the first may cost.
const MOST_MORE_MIB: u64 = 24;

/// How long one who keeps its connection waits for answers: the 99th of a hundred.
fn p99(client: &mut BufReader<TcpStream>) -> Duration {
    let mut waited: Vec<Duration> = (0..ASKED)
        .map(|_| {
            let began = Instant::now();
            assert_eq!(ask(client).expect("it is answered"), 200);
            began.elapsed()
        })
        .collect();
    waited.sort();
    waited[ASKED * 99 / 100]
}

fn connect(daemon: &Daemon) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(daemon.url.trim_start_matches("http://")).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it is a time");
    BufReader::new(stream)
}

/// The status of a probe that reads the store.
fn ask(client: &mut BufReader<TcpStream>) -> std::io::Result<u16> {
    client.get_mut().write_all(b"GET /readyz HTTP/1.1\r\nhost: test\r\n\r\n")?;
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        if client.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_lowercase();
        match line.split_once(' ') {
            Some(("http/1.1", rest)) => status = rest[..3].parse().expect("it is a status"),
            Some(("content-length:", rest)) => length = rest.parse().expect("it is a length"),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body)?;
    Ok(status)
}

fn resident_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number") / 1_024
}

#[cfg(target_os = "linux")]
#[test]
fn five_thousand_clients_that_never_end_their_request_slow_nobody_down_who_is_there_and_go() {
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).expect("up to the most it may always be");
    let dir = tempfile::tempdir().expect("there is room");
    let daemon = Daemon::start(dir.path());
    let mut client = connect(&daemon);
    let alone = p99(&mut client);
    let never_ends = |number: usize| {
        let mut stream = connect(&daemon).into_inner();
        // Whoever is sent away may find that out while writing.
        let _ =
            stream.write_all(if number.is_multiple_of(2) { b"POST /jobs HTTP/1.1\r\nhost: t" } else { b"G" });
        stream
    };
    let mut slow: Vec<TcpStream> = (0..FIRST).map(never_ends).collect();
    let before = resident_mib(daemon.pid());
    slow.extend((FIRST..SLOW).map(never_ends));
    let crowded = p99(&mut client);
    let more = resident_mib(daemon.pid()).saturating_sub(before);

    let began = Instant::now();
    let (mut sent_away, mut let_in) = (0, false);
    while !let_in {
        assert!(began.elapsed() < LET_IN_WITHIN, "nobody was let in, {sent_away} were sent away");
        match ask(&mut connect(&daemon)) {
            Ok(200) => let_in = true,
            Ok(503) => sent_away += 1,
            // Cut off where even that was too much.
            Err(_) => {}
            Ok(other) => panic!("{other}"),
        }
    }
    let waited = began.elapsed();
    println!(
        "p99 alone {alone:?}, in the crowd {crowded:?}; {more} MiB more; let in after {waited:?}, {sent_away} sent away"
    );
    assert!(crowded <= (alone * 2).max(UNNOTICED), "{alone:?} alone, {crowded:?} in the crowd");
    assert!(more <= MOST_MORE_MIB, "{more} MiB more");
    drop(slow);
    assert!(p99(&mut connect(&daemon)) <= (alone * 2).max(UNNOTICED));
    let log = daemon.log();
    assert!(!log.contains("panicked"), "{log}");
}
