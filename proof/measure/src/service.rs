//! The service that work is given to: a process of its own that answers over kept connections and keeps nothing. It costs little, because
//! it shares the machine.
//!
//! `POST /now` is done at once; `POST /work` is accepted, and done when it is asked about.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The longest request that is read.
const MAX_REQUEST_BYTES: usize = 65_536;
const HEAD_ENDS: &[u8] = b"\r\n\r\n";
const SAID: &str = "the service is at ";

/// Serves until the process is ended.
pub fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{SAID}{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(answer(stream));
        }
    })
}

async fn answer(mut stream: TcpStream) -> Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    loop {
        let Some(length) = whole(&received)? else {
            ensure!(received.len() < MAX_REQUEST_BYTES, "a request has no end");
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let (status, body) = if received.starts_with(b"POST /work") {
            let id = NEXT.fetch_add(1, Ordering::Relaxed);
            ("202 Accepted", format!(r#"{{"id":"w-{id}","state":"queued"}}"#))
        } else {
            let id = last_segment(&received);
            ("200 OK", format!(r#"{{"id":"{id}","state":"done","ok":true,"path":"out/0001.png"}}"#))
        };
        received.drain(..length);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
    }
}

/// The end of the path of a request: which work it is about.
fn last_segment(request: &[u8]) -> String {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let path = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let segment = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(segment).into_owned()
}

/// How long the first request is, if all of it is there.
fn whole(received: &[u8]) -> Result<Option<usize>> {
    let Some(end) = received.windows(HEAD_ENDS.len()).position(|four| four == HEAD_ENDS) else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&received[..end])?;
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(Ok(0), |(_, length)| length.trim().parse::<usize>())?;
    let all = end + HEAD_ENDS.len() + length;
    Ok((received.len() >= all).then_some(all))
}

/// The service, in a process of its own; ended when it is dropped.
pub struct ServiceProcess {
    child: Child,
    /// Where it is.
    pub address: SocketAddr,
}

impl ServiceProcess {
    /// Starts it from our own binary.
    pub fn start(binary: &Path) -> Result<Self> {
        let mut command = Command::new(binary);
        command.args(["bench-service", "--end-with", &std::process::id().to_string()]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let address = line.trim().strip_prefix(SAID).and_then(|address| address.parse().ok());
        Ok(Self { child, address: address.with_context(|| format!("the service said {line:?}"))? })
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
