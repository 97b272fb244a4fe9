//! A client that keeps its connection and hears every byte of what it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use crate::given::Daemon;

/// Whoever hears nothing for so long is not heard any more.
const PATIENCE: Duration = Duration::from_mins(1);

pub struct Client {
    stream: BufReader<TcpStream>,
    token: String,
}

/// What it was told.
pub struct Told {
    pub status: u16,
    pub retry_after: Option<String>,
    pub body: String,
}

pub fn token_of(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("admin.token")).expect("the daemon has written it").trim().to_owned()
}

impl Client {
    pub fn connect(daemon: &Daemon, token: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(daemon.url.trim_start_matches("http://"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), token: token.to_owned() })
    }

    pub fn get(&mut self, path: &str) -> std::io::Result<Told> {
        self.ask("GET", path, "", "")
    }

    pub fn create(&mut self, key: &str, body: &str) -> std::io::Result<Told> {
        self.ask("POST", "/jobs", &format!("idempotency-key: {key}\r\n"), body)
    }

    /// What it is told, unless the daemon is gone.
    fn ask(&mut self, method: &str, path: &str, more: &str, body: &str) -> std::io::Result<Told> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\n{more}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut told = Told { status: 0, retry_after: None, body: String::new() };
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end().to_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                told.status = rest[..3].parse().expect("it is a status");
            }
            if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.parse().expect("it is a length");
            }
            if let Some(rest) = line.strip_prefix("retry-after: ") {
                told.retry_after = Some(rest.to_owned());
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        told.body = String::from_utf8(body).expect("it is text");
        Ok(told)
    }
}
