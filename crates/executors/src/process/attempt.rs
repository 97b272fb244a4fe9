//! One attempt as a command: started, fed, listened to, and ended with everything that it started.

use store::ArtifactName;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::artifacts::Artifacts;
use super::capture::{CHUNK_BYTES, OutputReader, capture};
use super::command_line::CommandLine;
use super::follow::follow;
use super::launch::launch;
use super::outcome::{Outputs, produced};
use super::progress_lines::relay;
use super::{ProcessHost, ProcessSettings};
use engine::{Assignment, Failure, Link, Produced};

const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";
pub(super) const TOO_LONG: &str = "argv and env together are too long for the system";

/// Everything of it happens in this one future: when it is dropped, the socket is, and the supervisor ends the tree.
pub(super) async fn run(
    host: &ProcessHost,
    settings: &ProcessSettings,
    assignment: Assignment,
    link: Link,
) -> Produced {
    let (job_id, attempt_id) = (&assignment.job.id, &assignment.attempt_id);
    let path = |name| Artifacts::path_within(job_id, attempt_id, name);
    let (Some(stdout_path), Some(stderr_path)) = (path(STDOUT), path(STDERR)) else {
        let why = format!("{job_id} cannot be the name of a directory");
        return Produced::Failed(Failure::permanent("invalid_input", why));
    };
    let mut command = match CommandLine::of(host, settings, &assignment) {
        Ok(command) => command,
        Err(failure) => return Produced::Failed(failure),
    };
    let launched = match launch(host, settings, &command) {
        Ok(launched) => launched,
        Err(error) => return Produced::Failed(not_launched(&error)),
    };
    let (over, is_over) = watch::channel(false);
    let (dir, limit) = (host.artifacts.dir(), settings.output_limit_bytes);
    let output = |pipe| OutputReader::new(pipe, is_over.clone(), CHUNK_BYTES);
    let (ending, stdout, stderr, dropped_progress, ()) = tokio::join!(
        follow(host, launched.supervisor, settings, attempt_id, link.clone(), over),
        capture(output(launched.stdout), dir, (STDOUT, stdout_path), limit),
        capture(output(launched.stderr), dir, (STDERR, stderr_path), limit),
        relay(launched.progress, link.clone(), is_over.clone()),
        feed(launched.stdin, std::mem::take(&mut command.stdin), is_over.clone()),
    );
    for captured in [&stdout, &stderr] {
        if let Some(kept) = &captured.kept {
            let artifact = ArtifactName { job_id, attempt_id, name: captured.name };
            host.artifacts.share(artifact, &dir.join(&kept.path), kept.bytes).await;
        }
    }
    produced(ending, Outputs { dir, stdout, stderr, dropped_progress }, &command, settings).await
}

/// A command need not read what it is given: it may close its input or never look at it.
pub(super) async fn feed(mut stdin: pipe::Sender, input: Vec<u8>, mut over: watch::Receiver<bool>) {
    tokio::select! {
        _ = stdin.write_all(&input) => {}
        _ = over.wait_for(|over| *over) => {}
    }
}

/// The words were too long for the system, or the system has no room for another process.
pub(super) fn not_launched(error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::ArgumentListTooLong {
        return Failure::permanent("invalid_input", TOO_LONG);
    }
    Failure::transient("supervisor_not_started", format!("the supervisor could not be started: {error}"))
}
