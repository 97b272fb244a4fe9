//! A command that is heard to its end before anything of it is kept: whoever runs it looks at what it said first.
//!
//! What it says beyond its limits is read and thrown away, as everywhere.

use domain::{AttemptId, JobId};
use serde_json::{Value, json};
use store::ArtifactName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::artifacts::{self, Artifacts};
use super::attempt::{feed, not_launched};
use super::capture::{MAX_LEFT_IN_PIPE, read_left};
use super::command_line::CommandLine;
use super::follow::{Ending, follow};
use super::launch::launch;
use super::progress_lines::relay;
use super::{ProcessHost, ProcessSettings};
use engine::{Assignment, Failure, Link};

const CHUNK_BYTES: usize = 65_536;

/// A command that is over, and what it said.
pub(crate) struct Collected {
    pub(crate) ending: Ending,
    pub(crate) stdout: Heard,
    pub(crate) stderr: Heard,
}

/// What was heard of one output.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) bytes: Vec<u8>,
    /// More came than was kept.
    pub(crate) truncated: bool,
}

/// How much is kept of each output.
#[derive(Clone, Copy)]
pub(crate) struct HeardLimits {
    pub(crate) stdout_bytes: usize,
    pub(crate) stderr_bytes: usize,
}

/// Runs the command of the settings with this on its standard input. Dropping the future ends the tree.
pub(crate) async fn collect(
    host: &ProcessHost,
    settings: &ProcessSettings,
    assignment: &Assignment,
    stdin: Vec<u8>,
    limits: HeardLimits,
    link: Link,
) -> Result<Collected, Failure> {
    let command = CommandLine::of(host, settings, assignment)?;
    let launched = launch(host, settings, &command).map_err(|error| not_launched(&error))?;
    let attempt_id = &assignment.attempt_id;
    let (over, is_over) = watch::channel(false);
    let ending = async {
        let ending = follow(host, launched.supervisor, settings, attempt_id, link.clone()).await;
        over.send_replace(true);
        ending
    };
    let (ending, stdout, stderr, _, ()) = tokio::join!(
        ending,
        hear(launched.stdout, limits.stdout_bytes, is_over.clone()),
        hear(launched.stderr, limits.stderr_bytes, is_over.clone()),
        relay(launched.progress, link.clone(), is_over.clone()),
        feed(launched.stdin, stdin, is_over),
    );
    Ok(Collected { ending, stdout, stderr })
}

/// Reads an output until its end, or until the tree is over and the pipe is empty.
async fn hear(mut pipe: pipe::Receiver, limit: usize, mut over: watch::Receiver<bool>) -> Heard {
    let mut heard = Heard::default();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        tokio::select! {
            read = pipe.read(&mut chunk) => match read {
                Ok(count @ 1..) => heard.take(&chunk[..count], limit),
                Ok(0) | Err(_) => return heard,
            },
            _ = over.wait_for(|over| *over) => break,
        }
    }
    // Someone outside the tree may hold the other end: then there is no end to wait for.
    let mut left = MAX_LEFT_IN_PIPE;
    while let count @ 1.. = read_left(&pipe, &mut chunk)
        && left > 0
    {
        left = left.saturating_sub(count);
        heard.take(&chunk[..count], limit);
    }
    heard
}

impl Heard {
    fn take(&mut self, bytes: &[u8], limit: usize) {
        let room = limit - self.bytes.len();
        self.truncated |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// One output as an artifact, on stable storage before a result names it.
pub(crate) async fn keep_artifact(
    host: &ProcessHost,
    (job_id, attempt_id): (&JobId, &AttemptId),
    name: &'static str,
    heard: &Heard,
) -> std::io::Result<Value> {
    let path = Artifacts::path_within(job_id, attempt_id, name)
        .ok_or_else(|| std::io::Error::other(format!("{job_id} cannot be the name of a directory")))?;
    let whole = host.artifacts.dir().join(&path);
    let mut file = artifacts::create(&whole).await?;
    file.write_all(&heard.bytes).await?;
    file.flush().await?;
    file.sync_all().await?;
    artifacts::sync_directories(&whole).await?;
    let bytes = heard.bytes.len() as u64;
    host.artifacts.share(ArtifactName { job_id, attempt_id, name }, &whole, bytes).await;
    Ok(json!({
        "name": name,
        "path": path,
        "bytes": bytes,
        "truncated": heard.truncated,
        "sha256": store::sha256(&heard.bytes),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_in_a_pipe_when_all_is_over_is_heard_also_if_the_runtime_has_not_noticed_it() {
        for _ in 0..100 {
            let (from, to) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
            rustix::io::write(&to, b"last words").unwrap();
            let (_over, is_over) = watch::channel(true);
            // The other end stays open, as if somebody outside of the tree had it.
            let heard = hear(pipe::Receiver::from_owned_fd(from).unwrap(), 100, is_over).await;
            assert_eq!(heard.bytes, b"last words");
        }
    }
}
