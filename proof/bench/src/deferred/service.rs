//! The service that is asked: a process of its own that answers every request over kept connections, at once or after a moment, or
//! accepts and never answers.
//!
//! It answers that the work is running and wants to be left alone for a long time. It costs little, because it shares the machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nRetry-After: 3600\r\nContent-Length: 93\r\n\r\n\
    {\"id\":\"w-1\",\"state\":\"running\",\"progress\":{\"percent\":40},\"message\":\"rendering frame 12 of 30\"}";
/// The longest request head that is read.
const MAX_HEAD_BYTES: usize = 8_192;
/// Requests to paths that begin so are never answered.
const HUNG: &[u8] = b"GET /hung/";
/// These take a moment.
const PACED: &[u8] = b"GET /paced/";
const MOMENT: Duration = Duration::from_millis(10);
/// This one tells how many of those were under way at most.
const MOST: &[u8] = b"GET /most ";

/// What takes a moment and is under way now, and at most so far.
static UNDER_WAY: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));

/// Answers polls: for the bench's own use.
#[derive(Args)]
pub struct Service;

/// Serves until the process is ended.
pub fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(answer(stream));
        }
    })
}

async fn answer(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    loop {
        let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else {
            anyhow::ensure!(received.len() < MAX_HEAD_BYTES, "the head has no end");
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
            continue;
        };
        if received.starts_with(HUNG) {
            std::future::pending::<()>().await;
        }
        let paced = received.starts_with(PACED);
        if received.starts_with(MOST) {
            let most = UNDER_WAY.1.load(Ordering::Relaxed).to_string();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{most}", most.len());
            stream.write_all(head.as_bytes()).await?;
            return Ok(());
        }
        received.drain(..end + 4);
        if paced {
            let now = UNDER_WAY.0.fetch_add(1, Ordering::Relaxed) + 1;
            UNDER_WAY.1.fetch_max(now, Ordering::Relaxed);
            tokio::time::sleep(MOMENT).await;
            UNDER_WAY.0.fetch_sub(1, Ordering::Relaxed);
        }
        stream.write_all(ANSWER).await?;
    }
}

/// The service, in a process of its own; ended when it is dropped.
pub struct ServiceProcess {
    child: Child,
    pub address: SocketAddr,
}

impl ServiceProcess {
    pub fn start() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("poll-service").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let address = line.trim().parse().with_context(|| format!("the service said {line:?}"))?;
        Ok(Self { child, address })
    }

    /// How many requests that take a moment were under way at most.
    pub fn most_under_way(&self) -> Result<usize> {
        let mut stream = std::net::TcpStream::connect(self.address)?;
        stream.write_all(b"GET /most HTTP/1.1\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.rsplit("\r\n").next().unwrap_or_default().parse()?)
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
