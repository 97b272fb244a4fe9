//! A command that is heard to its end before anything of it is kept: whoever runs it looks at what it said first.
//!
//! What it says beyond its limits is read and thrown away, as everywhere.

use domain::{AttemptId, JobId};
use serde_json::Value;
use store::ArtifactName;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;

use super::artifacts::{self, Artifacts, KeptFile};
use super::attempt::{feed, not_launched};
use super::capture::{CHUNK_BYTES, OutputReader, finish};
use super::command_line::CommandLine;
use super::follow::{Ending, follow};
use super::launch::launch;
use super::progress_lines::relay;
use super::{ProcessHost, ProcessSettings};
use engine::{Assignment, Failure, Link};

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
    let (over, is_over) = watch::channel(false);
    let output = |pipe| OutputReader::new(pipe, is_over.clone(), CHUNK_BYTES);
    let (ending, stdout, stderr, _, ()) = tokio::join!(
        follow(host, launched.supervisor, settings, &assignment.attempt_id, link.clone(), over),
        hear(output(launched.stdout), limits.stdout_bytes),
        hear(output(launched.stderr), limits.stderr_bytes),
        relay(launched.progress, link.clone(), is_over.clone()),
        feed(launched.stdin, stdin, is_over.clone()),
    );
    Ok(Collected { ending, stdout, stderr })
}

async fn hear(mut output: OutputReader, limit: usize) -> Heard {
    let mut heard = Heard::default();
    while let Some(bytes) = output.next().await {
        heard.take(bytes, limit);
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
    finish(file, &whole).await?;
    let (bytes, sha256) = (heard.bytes.len() as u64, store::sha256(&heard.bytes));
    host.artifacts.share(ArtifactName { job_id, attempt_id, name }, &whole, bytes).await;
    Ok(KeptFile { path, bytes, truncated: heard.truncated, sha256 }.listed(name))
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
            let pipe = tokio::net::unix::pipe::Receiver::from_owned_fd(from).unwrap();
            let heard = hear(OutputReader::new(pipe, is_over, CHUNK_BYTES), 100).await;
            assert_eq!(heard.bytes, b"last words");
        }
    }
}
