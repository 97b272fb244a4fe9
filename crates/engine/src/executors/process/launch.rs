//! Starts the supervisor of one attempt, with a socket to it and pipes to its command.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::command_line::CommandLine;
use super::supervisor::Descriptors;
use super::{ProcessHost, ProcessSettings};

/// A supervisor that was started, and our ends of everything.
pub(super) struct Launched {
    pub supervisor: Child,
    /// Closing our end of it ends the tree.
    pub socket: UnixStream,
    pub stdin: pipe::Sender,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
    pub progress: pipe::Receiver,
}

/// The command's ends wait in the socket before the supervisor is there, and none of them stays with us.
pub(super) fn launch(
    host: &ProcessHost,
    settings: &ProcessSettings,
    command: &CommandLine,
) -> io::Result<Launched> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    let (stdin, to_stdin) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from_stdout, stdout) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from_stderr, stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from_progress, progress) = pipe_with(PipeFlags::CLOEXEC)?;
    Descriptors { progress, stdin, stdout, stderr }.send(ours.as_fd())?;
    ours.set_nonblocking(true)?;
    let supervisor = Command::new(&host.supervisor)
        .arg("supervise")
        .arg("--grace-ms")
        .arg(settings.grace.as_millis().to_string())
        .args(settings.limits.arguments())
        .arg("--")
        .args(&command.argv)
        .env_clear()
        .envs(&command.environment)
        .current_dir(&command.working_directory)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(Launched {
        supervisor,
        socket: UnixStream::from_std(ours)?,
        stdin: pipe::Sender::from_owned_fd(to_stdin)?,
        stdout: pipe::Receiver::from_owned_fd(from_stdout)?,
        stderr: pipe::Receiver::from_owned_fd(from_stderr)?,
        progress: pipe::Receiver::from_owned_fd(from_progress)?,
    })
}
