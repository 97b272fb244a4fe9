//! One output of a command: kept in a file up to its limit, read to its end whatever comes.
//!
//! A full disk or a limit never blocks the command: what is not kept is read and thrown away, and the record says so.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::artifacts;

const CHUNK_BYTES: usize = 65_536;
/// The end of an output, for the record.
const TAIL_BYTES: usize = 4_096;
/// What may still be in a pipe when everyone who wrote to it is over: the most that a pipe may hold.
pub(super) const MAX_LEFT_IN_PIPE: usize = 1_048_576;

/// What was seen of an output.
pub(super) struct Captured {
    pub kept: Option<Kept>,
    /// More came than was kept.
    pub truncated: bool,
    tail: Tail,
    /// Why nothing is kept although something came.
    pub error: Option<io::Error>,
}

/// The end of an output.
#[derive(Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    fn see(&mut self, bytes: &[u8]) {
        let newest = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let too_many = (self.0.len() + newest.len()).saturating_sub(TAIL_BYTES);
        self.0.drain(..too_many);
        self.0.extend(newest);
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The end of an output of which nothing else is kept.
#[derive(Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<Tail>>);

impl LastWords {
    pub(super) fn text(&self) -> String {
        self.lock().text()
    }

    pub(super) fn forget(&self) {
        *self.lock() = Tail::default();
    }

    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

/// Reads an output until its end, or until the tree is over and the pipe is empty, and remembers the last of it.
pub(super) async fn listen(mut pipe: pipe::Receiver, words: LastWords, mut over: watch::Receiver<bool>) {
    let mut chunk = vec![0; TAIL_BYTES];
    loop {
        tokio::select! {
            read = pipe.read(&mut chunk) => match read {
                Ok(count @ 1..) => words.lock().see(&chunk[..count]),
                Ok(0) | Err(_) => return,
            },
            _ = over.wait_for(|over| *over) => break,
        }
    }
    let mut left = MAX_LEFT_IN_PIPE;
    while let count @ 1.. = read_left(&pipe, &mut chunk)
        && left > 0
    {
        left = left.saturating_sub(count);
        words.lock().see(&chunk[..count]);
    }
}

/// Reads what is in a pipe now; nothing if it is empty. The kernel is asked: what the runtime has heard of a pipe may be older than the
/// word that everyone who wrote to it is over.
pub(super) fn read_left(pipe: &pipe::Receiver, chunk: &mut [u8]) -> usize {
    rustix::io::read(pipe, chunk).unwrap_or_default()
}

/// What is in the file.
pub(super) struct Kept {
    pub bytes: u64,
    pub sha256: domain::Digest,
}

/// The file, as long as it is written to.
struct Writing {
    file: File,
    bytes: u64,
    hash: Sha256,
}

/// Reads an output until its end, or until the tree is over and the pipe is empty.
pub(super) async fn capture(
    mut pipe: pipe::Receiver,
    path: PathBuf,
    limit_bytes: u64,
    mut over: watch::Receiver<bool>,
) -> Captured {
    let mut captured = Captured { kept: None, truncated: false, tail: Tail::default(), error: None };
    let mut writing = None;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = tokio::select! {
            read = pipe.read(&mut chunk) => read.unwrap_or_default(),
            _ = over.wait_for(|over| *over) => break,
        };
        if count == 0 {
            break;
        }
        captured.see(&chunk[..count], &path, limit_bytes, &mut writing).await;
    }
    // Someone outside the tree may hold the other end: then there is no end to wait for.
    let mut left = MAX_LEFT_IN_PIPE;
    while let count @ 1.. = read_left(&pipe, &mut chunk)
        && left > 0
    {
        left = left.saturating_sub(count);
        captured.see(&chunk[..count], &path, limit_bytes, &mut writing).await;
    }
    if let Some(writing) = writing {
        match writing.finish(&path).await {
            Ok(kept) => captured.kept = Some(kept),
            Err(error) => captured.error = Some(error),
        }
    }
    captured
}

impl Captured {
    /// The end of it, as text.
    pub(super) fn tail(&self) -> String {
        self.tail.text()
    }

    async fn see(&mut self, bytes: &[u8], path: &Path, limit_bytes: u64, writing: &mut Option<Writing>) {
        self.tail.see(bytes);
        if self.error.is_some() {
            return;
        }
        let written = writing.as_ref().map_or(0, |writing| writing.bytes);
        let room = usize::try_from(limit_bytes - written).unwrap_or(usize::MAX);
        self.truncated |= bytes.len() > room;
        let bytes = &bytes[..bytes.len().min(room)];
        if bytes.is_empty() {
            return;
        }
        if let Err(error) = write(writing, path, bytes).await {
            *writing = None;
            self.error = Some(error);
        }
    }
}

/// The file is there from the first byte on: most commands say nothing on one of their outputs.
async fn write(writing: &mut Option<Writing>, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let writing = match writing {
        Some(writing) => writing,
        None => {
            let file = artifacts::create(path).await?;
            writing.insert(Writing { file, bytes: 0, hash: Sha256::new() })
        }
    };
    writing.file.write_all(bytes).await?;
    writing.hash.update(bytes);
    writing.bytes += bytes.len() as u64;
    Ok(())
}

impl Writing {
    /// On stable storage before the result names it.
    async fn finish(mut self, path: &Path) -> io::Result<Kept> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        artifacts::sync_directories(path).await?;
        Ok(Kept { bytes: self.bytes, sha256: domain::Digest(self.hash.finalize().into()) })
    }
}
