//! Services whose answers never end, in every place where an answer could: the daemon cuts them off, in time, and needs hardly any room
//! for what it was sent. Its connector allows the most that one may.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::given::{Daemon, MIB, create, ended, within};

/// By how much the daemon may grow for any of them.
const MOST_GROWTH: u64 = 16 * MIB;
/// For a whole answer.
const DEADLINE: Duration = Duration::from_secs(2);
/// By how much that may be missed.
const OFF_BY: Duration = Duration::from_secs(1);
const DRIP_EVERY: Duration = Duration::from_millis(100);
/// What one piece of the bomb unpacks to, and how many pieces it has: as much as may come over the wire.
const PIECE_MIB: u64 = 8;
const PIECES: usize = 100;

/// An answer: how it begins, and what follows again and again for as long as somebody takes it in.
struct Answer {
    begins: Vec<u8>,
    goes_on: Vec<u8>,
    every: Duration,
}

fn endless(begins: &str, goes_on: impl Into<Vec<u8>>) -> Answer {
    Answer { begins: begins.into(), goes_on: goes_on.into(), every: Duration::ZERO }
}

fn dripping(begins: &str) -> Answer {
    Answer { begins: begins.into(), goes_on: b"x".to_vec(), every: DRIP_EVERY }
}

/// By their names.
fn answers() -> BTreeMap<&'static str, Answer> {
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = format!("{ok}Transfer-Encoding: chunked\r\n\r\n");
    let much = "x".repeat(65_536);
    let bomb = bomb();
    let head = format!("{ok}Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", bomb.len());
    let bomb =
        Answer { begins: [head.into_bytes(), bomb].concat(), goes_on: Vec::new(), every: Duration::ZERO };
    let headers = "X-One-More: 1\r\n".repeat(100_000);
    BTreeMap::from([
        ("bomb", bomb),
        ("chunks", endless(&chunked, format!("10000\r\n{much}\r\n"))),
        ("one-chunk", endless(&format!("{chunked}ffffffffff\r\n"), much.clone())),
        ("small-chunks", endless(&chunked, "1\r\nx\r\n".repeat(10_000))),
        ("chunk-extension", endless(&format!("{chunked}5;a="), much.clone())),
        ("trailers", endless(&format!("{chunked}0\r\n"), "X-More: more\r\n".repeat(5_000))),
        ("no-length", endless(&format!("{ok}Connection: close\r\n\r\n"), much.clone())),
        ("length", endless(&format!("{ok}Content-Length: 99999999999\r\n\r\n"), much.clone())),
        ("headers", endless(&format!("{ok}{headers}"), "X-More: more\r\n".repeat(5_000))),
        ("one-header", endless(&format!("{ok}X-Long: "), much.clone())),
        ("status", endless("HTTP/1.1 200 ", much)),
        ("not-yet", endless("", "HTTP/1.1 100 Continue\r\n\r\n".repeat(2_000))),
        ("body-drips", dripping(&format!("{ok}Content-Length: 100000\r\n\r\n"))),
        ("head-drips", dripping(&format!("{ok}X-Slow: "))),
        ("says-nothing", Answer { begins: Vec::new(), goes_on: Vec::new(), every: DRIP_EVERY }),
    ])
}

/// Many that were packed one after the other unpack one after the other.
fn bomb() -> Vec<u8> {
    let pack = format!("head -c {} /dev/zero | gzip -9", PIECE_MIB * MIB);
    let packed = Command::new("sh").args(["-c", &pack]).output().expect("there is a shell");
    assert!(packed.status.success() && packed.stdout.len() > 1_000);
    packed.stdout.repeat(PIECES)
}

/// How each answer was taken: how much of it, and for how long.
type Taken = Arc<Mutex<BTreeMap<String, (u64, Duration)>>>;

fn serve(listener: TcpListener, taken: &Taken) {
    let answers = Arc::new(answers());
    for stream in listener.incoming() {
        let (answers, taken) = (answers.clone(), taken.clone());
        std::thread::spawn(move || {
            let Ok(stream) = stream else { return };
            let Some(way) = asked(&stream) else { return };
            let began = Instant::now();
            let bytes = give(stream, &answers[way.as_str()]);
            taken.lock().expect("nobody panics with it").insert(way, (bytes, began.elapsed()));
        });
    }
}

/// The last part of the path that is asked for, once the request is here.
fn asked(stream: &TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream).lines();
    let way = lines.next()?.ok()?.split(' ').nth(1)?.trim_start_matches('/').to_owned();
    lines.map_while(Result::ok).find(String::is_empty)?;
    Some(way)
}

/// Goes on until the other side has had enough, and says how much it took.
fn give(mut stream: TcpStream, answer: &Answer) -> u64 {
    let mut given = 0;
    if stream.write_all(&answer.begins).is_ok() {
        given += answer.begins.len() as u64;
        while answer.every.is_zero()
            && !answer.goes_on.is_empty()
            && stream.write_all(&answer.goes_on).is_ok()
        {
            given += answer.goes_on.len() as u64;
        }
    }
    if !answer.every.is_zero() {
        stream.set_read_timeout(Some(answer.every)).expect("it is more than nothing");
        // The other side says nothing more; it only hangs up.
        while stream.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
            && stream.write_all(&answer.goes_on).is_ok()
        {
            given += answer.goes_on.len() as u64;
        }
    }
    given
}

#[test]
fn no_answer_of_a_service_takes_room_or_more_than_its_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let taken = Taken::default();
    let of_service = taken.clone();
    std::thread::spawn(move || serve(listener, &of_service));
    let dir = tempfile::tempdir().unwrap();
    let connector = dir.path().join("hostile.yaml");
    let text = format!(
        "name: hostile\nexecution_mode_support: sync-only\nallow: [\"{address}\"]\n\
         limits: {{ response_bytes: 1048576, result_bytes: 1048576, header_bytes: 1048576 }}\n\
         submit: {{ url: \"http://{address}/${{input.way}}\", method: GET, idempotent: true, timeout_ms: {} }}\n",
        DEADLINE.as_millis()
    );
    std::fs::write(&connector, text).unwrap();
    let daemon = Daemon::start_with(dir.path(), &["--connector", connector.to_str().unwrap()]);
    let ask = |way: &str| {
        let input = json!({ "way": way }).to_string();
        let asks = ["asks", "--executor", "hostile", "--max-attempts", "1", "--input", &input];
        ended(dir.path(), &create(dir.path(), &asks), "failed");
        within("the service sees that it was cut off", || taken.lock().unwrap().remove(way))
    };
    // It has done all that it does for such a job once.
    ask("says-nothing");
    let mut bytes = 0;
    for way in answers().into_keys() {
        let before = daemon.begin_peak();
        let (given, took) = ask(way);
        let growth = daemon.peak_bytes().saturating_sub(before);
        println!("{way}: {given} bytes sent in {took:.2?}, the daemon grew by {} KiB", growth / 1_024);
        assert!(growth <= MOST_GROWTH, "{way}: the daemon grew by {growth} bytes");
        assert!(took < DEADLINE + OFF_BY, "{way}: cut off after {took:?}");
        let has_its_time = way.ends_with("-drips");
        assert!(!has_its_time || took + OFF_BY > DEADLINE, "{way}: cut off after {took:?} already");
        bytes += given;
    }
    assert!(bytes > 2 * MOST_GROWTH, "{bytes} bytes were sent: too few to be noticed");
}
