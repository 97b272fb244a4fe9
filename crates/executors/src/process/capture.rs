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

use super::artifacts::{self, KeptFile};

/// What is read at once of an output.
pub(super) const CHUNK_BYTES: usize = 65_536;
/// The end of an output, for the record.
const TAIL_BYTES: usize = 4_096;
/// What may still be in a pipe when everyone who wrote to it is over: the most that a pipe may hold.
const MAX_LEFT_IN_PIPE: usize = 1_048_576;

/// Reads an output until its end, or until the tree is over and the pipe is empty.
pub(super) struct OutputReader {
    pipe: pipe::Receiver,
    over: watch::Receiver<bool>,
    chunk: Vec<u8>,
    /// Once the tree is over: how much more is read.
    left: Option<usize>,
}

impl OutputReader {
    pub(super) fn new(pipe: pipe::Receiver, over: watch::Receiver<bool>, chunk_bytes: usize) -> Self {
        Self { pipe, over, chunk: vec![0; chunk_bytes], left: None }
    }

    /// What comes next; none at the end. Nothing is lost if it is not waited for.
    pub(super) async fn next(&mut self) -> Option<&[u8]> {
        let mut read = None;
        if self.left.is_none() {
            tokio::select! {
                count = self.pipe.read(&mut self.chunk) => read = Some(count.unwrap_or_default()),
                _ = self.over.wait_for(|over| *over) => {}
            }
        }
        // Someone outside the tree may hold the other end: then there is no end to wait for.
        let count = read.unwrap_or_else(|| self.read_left());
        (count > 0).then(|| &self.chunk[..count])
    }

    /// Reads what is in the pipe now; nothing if it is empty. The kernel is asked: what the runtime has heard of a pipe may be older than
    /// the word that everyone who wrote to it is over.
    fn read_left(&mut self) -> usize {
        let left = self.left.get_or_insert(MAX_LEFT_IN_PIPE);
        if *left == 0 {
            return 0;
        }
        let count = rustix::io::read(&self.pipe, &mut self.chunk[..]).unwrap_or_default();
        *left = left.saturating_sub(count);
        count
    }
}

/// What was seen of an output.
pub(super) struct Captured {
    pub name: &'static str,
    pub kept: Option<KeptFile>,
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

/// Remembers the last of an output.
pub(super) async fn listen(pipe: pipe::Receiver, words: LastWords, over: watch::Receiver<bool>) {
    let mut output = OutputReader::new(pipe, over, TAIL_BYTES);
    while let Some(bytes) = output.next().await {
        words.lock().see(bytes);
    }
}

/// The file, as long as it is written to.
struct Writing {
    file: File,
    bytes: u64,
    hash: Sha256,
}

/// Keeps an output under this path below a directory.
pub(super) async fn capture(
    mut output: OutputReader,
    dir: &Path,
    (name, path): (&'static str, PathBuf),
    limit_bytes: u64,
) -> Captured {
    let mut captured = Captured { name, kept: None, truncated: false, tail: Tail::default(), error: None };
    let whole = dir.join(&path);
    let mut writing = None;
    while let Some(bytes) = output.next().await {
        captured.see(bytes, &whole, limit_bytes, &mut writing).await;
    }
    if let Some(Writing { file, bytes, hash }) = writing {
        match finish(file, &whole).await {
            Ok(()) => {
                let sha256 = domain::Digest(hash.finalize().into());
                captured.kept = Some(KeptFile { path, bytes, truncated: captured.truncated, sha256 });
            }
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

/// On stable storage before the result names it.
pub(super) async fn finish(mut file: File, path: &Path) -> io::Result<()> {
    file.flush().await?;
    file.sync_all().await?;
    artifacts::sync_directories(path).await
}
