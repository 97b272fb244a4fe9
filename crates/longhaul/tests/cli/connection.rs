//! The token goes to the daemon that it is for and nowhere else.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use crate::given::{Daemon, binary, expect, longhaul, stderr};

/// Answers one request with this, and gives back its head.
fn answers(listener: TcpListener, answer: String) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("someone comes");
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone().expect("it is open"));
        while reader.read_line(&mut head).expect("it is text") > 2 {}
        stream.write_all(answer.as_bytes()).expect("it is open");
        head
    })
}

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    (listener, url)
}

#[test]
fn redirect_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (first, url) = listener();
    let (second, elsewhere) = listener();
    let answer = format!("HTTP/1.1 302 Found\r\nlocation: {elsewhere}/jobs\r\ncontent-length: 0\r\n\r\n");
    let asked = answers(first, answer);
    let output = longhaul(dir.path(), &["jobs", "list", "--url", &url, "--token", "lh_secret"]);
    expect(1, &output);
    assert!(stderr(&output).contains("answered 302"), "{}", stderr(&output));
    assert!(asked.join().unwrap().to_lowercase().contains("authorization: bearer lh_secret"));
    second.set_nonblocking(true).unwrap();
    assert!(second.accept().is_err(), "the redirect was followed");
}

#[test]
fn administrators_token_goes_only_to_the_daemon_that_made_it() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let (stranger, url) = listener();
    let asked = answers(stranger, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned());
    longhaul(dir.path(), &["jobs", "list", "--url", &url]);
    assert!(!asked.join().unwrap().to_lowercase().contains("authorization"));
}

#[test]
fn environment_names_the_daemon_and_the_token() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let daemon = Daemon::start(dir.path());
    let token = std::fs::read_to_string(dir.path().join("admin.token")).unwrap();
    let output = binary(&["jobs", "list"])
        .env("LONGHAUL_URL", &daemon.url)
        .env("LONGHAUL_TOKEN", token.trim())
        .current_dir(elsewhere.path())
        .output()
        .unwrap();
    assert_eq!(expect(0, &output), "No jobs.\n");
}
