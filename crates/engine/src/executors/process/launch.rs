//! Sends a supervisor with the command of one attempt, and has pipes to it.

use std::io;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;

use super::command_line::CommandLine;
use super::errand::Errand;
use super::supervisor::Descriptors;
use super::supervisors::Supervisor;
use super::{ProcessHost, ProcessSettings};

/// A command that is being started, and our ends of everything.
pub(super) struct Launched {
    pub supervisor: Supervisor,
    pub stdin: pipe::Sender,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
    pub progress: pipe::Receiver,
}

/// None of the command's ends stays with us.
pub(super) fn launch(
    host: &ProcessHost,
    settings: &ProcessSettings,
    command: &CommandLine,
) -> io::Result<Launched> {
    let (stdin, to_stdin) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from_stdout, stdout) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from_stderr, stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from_progress, progress) = pipe_with(PipeFlags::CLOEXEC)?;
    let errand = Errand {
        grace: settings.grace,
        // The supervisor is elsewhere: what is relative is so to where we are.
        working_directory: std::path::absolute(&command.working_directory)?,
        argv: command.argv.iter().map(Into::into).collect(),
        environment: command.environment.clone().into_iter().collect(),
    };
    let descriptors = Descriptors { progress, stdin, stdout, stderr, errand: errand.to_file()? };
    Ok(Launched {
        supervisor: host.supervisors.send(host, &settings.limits, &descriptors)?,
        stdin: pipe::Sender::from_owned_fd(to_stdin)?,
        stdout: pipe::Receiver::from_owned_fd(from_stdout)?,
        stderr: pipe::Receiver::from_owned_fd(from_stderr)?,
        progress: pipe::Receiver::from_owned_fd(from_progress)?,
    })
}
