//! Sends a supervisor with the command of one attempt, and has pipes to it.

use std::io;
use std::path::PathBuf;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;

use super::command_line::CommandLine;
use super::errand::Errand;
use super::supervisor::Descriptors;
use super::supervisors::Supervisor;
use super::{ProcessHost, ProcessSettings, Program};

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
        run_as: settings.run_as.as_ref().map(|user| (user.uid, user.gid)),
        own_paths: own_paths(settings),
        argv: command.argv.iter().map(Into::into).collect(),
        environment: command.environment.clone().into_iter().collect(),
    };
    let descriptors = Descriptors { progress, stdin, stdout, stderr, errand: errand.to_file()? };
    Ok(Launched {
        supervisor: host.supervisors.send(host, settings, &descriptors)?,
        stdin: pipe::Sender::from_owned_fd(to_stdin)?,
        stdout: pipe::Receiver::from_owned_fd(from_stdout)?,
        stderr: pipe::Receiver::from_owned_fd(from_stderr)?,
        progress: pipe::Receiver::from_owned_fd(from_progress)?,
    })
}

/// What the operator has this command work with: where it works by itself, its program, and what the executor adds. The full paths, because
/// the sandbox knows no others; where the job wants to work is not among them.
fn own_paths(settings: &ProcessSettings) -> Vec<PathBuf> {
    let program = match &settings.program {
        Program::Fixed(argv) => argv.first().filter(|program| program.contains('/')),
        Program::FromJob => None,
    };
    let program = program.map(|program| settings.working_directory.join(program));
    let named = std::iter::once(&settings.working_directory).chain(&program).chain(&settings.own_paths);
    named.filter_map(|path| path.canonicalize().ok()).collect()
}
