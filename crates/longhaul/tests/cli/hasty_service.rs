//! A service that calls back before it has answered, and then does not answer: whoever gave it the work may die in between.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value;

/// The service; it lives as long as the test's process.
pub struct Hasty {
    pub address: String,
    /// How often it was given work.
    pub starts: Arc<AtomicUsize>,
}

impl Hasty {
    /// With what tells that the first callback was answered with success.
    pub fn start() -> (Self, Receiver<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let starts = Arc::new(AtomicUsize::new(0));
        let (tell, told) = channel();
        let counted = starts.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (tell, starts) = (tell.clone(), counted.clone());
                std::thread::spawn(move || serve(stream, &tell, &starts));
            }
        });
        (Self { address, starts }, told)
    }
}

/// One request of one connection.
fn serve(mut stream: TcpStream, tell: &Sender<()>, starts: &AtomicUsize) {
    let (line, body) = read(&stream);
    let answer = match line.split(' ').next() {
        Some("POST") => {
            if starts.fetch_add(1, Ordering::SeqCst) == 0 {
                let sent: Value = serde_json::from_slice(&body).expect("it is JSON");
                let url = sent["callback_url"].as_str().expect("it is told where to call");
                assert!(call(url).contains(" 2"), "the callback is taken");
                tell.send(()).expect("the test waits");
                // Never answered: the caller is killed meanwhile.
                let _ = stream.read(&mut [0]);
                return;
            }
            ("202 Accepted", r#"{"id":"r-1","state":"queued"}"#)
        }
        Some("GET") if line.contains("?key=") => ("404 Not Found", "{}"),
        Some("GET") if line.contains("/result") => ("200 OK", r#"{"pages":12}"#),
        _ => ("200 OK", r#"{"id":"r-1","state":"done"}"#),
    };
    let (status, body) = answer;
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
}

/// The first line and the body of a request.
fn read(stream: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).expect("it is text");
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("it is text");
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("it is a number");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("it is whole");
    (first, body)
}

/// Calls back, and gives the first line of the answer.
fn call(url: &str) -> String {
    let rest = url.strip_prefix("http://").expect("it speaks plain HTTP");
    let (host, path) = rest.split_once('/').expect("it has a path");
    let mut stream = TcpStream::connect(host).expect("the daemon listens");
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    )
    .expect("it is taken");
    let mut first = String::new();
    BufReader::new(stream).read_line(&mut first).expect("it answers");
    first
}
