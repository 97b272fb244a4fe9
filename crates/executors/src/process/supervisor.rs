//! The supervisor: a small process of our own binary that stands between the daemon and one command at a time.
//!
//! It adopts every descendant that loses its parent, so that none can leave the tree, and reports the end only when the tree is empty: when
//! the command is over the rest is killed; when told to stop, or when the daemon is gone, all get TERM, and KILL after the grace. After a
//! command that ended by itself it waits for another, otherwise it exits, also when it could not start the command. It holds no end of the
//! command's pipes, and never speaks to the store.

mod descriptors;
mod tree;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, set_child_subreaper, setsid};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

use super::errand::Errand;
use super::progress_lines::PROGRESS_DESCRIPTOR;
use super::report::{Exit, Report, is_of_program};
use super::sandbox::{ExposedPaths, Sandbox, SandboxSettings, hide_from_tracers};
use super::settings::Limits;
pub(super) use descriptors::Descriptors;
use descriptors::inherit_progress;
use tree::{Left, Tree};

/// The verb of our binary.
pub const VERB: &str = "supervise";
/// Children that are killed and forked anew are looked for again after this long at the latest.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long killing may take: what is left then hangs in the kernel, and dies when it comes out.
pub(super) const KILL_LIMIT: Duration = Duration::from_secs(10);

/// What a supervisor is started with.
#[derive(Clone, Debug)]
pub struct SupervisorSettings {
    /// What the kernel keeps its commands to.
    pub limits: Limits,
    /// What its commands are kept in, if they are.
    pub sandbox: Option<SandboxSettings>,
}

/// Finds out whether the sandbox of these settings can be had here.
pub fn try_sandbox(settings: &SupervisorSettings) -> io::Result<()> {
    let Some(sandbox) = &settings.sandbox else { return Ok(()) };
    settings.limits.set()?;
    Sandbox::enter(sandbox)?.try_out()
}

/// Runs commands one after the other, each to the end of its tree. The daemon's socket is standard input; commands come over it.
pub fn supervise(settings: &SupervisorSettings) -> io::Result<()> {
    descriptors::close_inherited()?;
    // The lowest number stays free for what each message brings first.
    let lowest = io::stdin().as_fd().try_clone_to_owned()?;
    // While there is one thread. Whoever sends a command hears of it if there is no sandbox.
    let sandbox = settings.sandbox.as_ref().map(Sandbox::enter).transpose();
    hide_from_tracers()?;
    // Refused to the leader of a process group: then the sweep after a killed supervisor has only the marks to go by.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut watch = runtime.block_on(async { Watch::new() })?;
    drop(lowest);
    runtime.block_on(async {
        while let Some(descriptors) = watch.descriptors().await? {
            match attend(descriptors, &settings.limits, &sandbox, &mut watch).await? {
                After::Another => {}
                After::Nothing => break,
            }
        }
        Ok(())
    })
}

/// Whether a supervisor may have another command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Another,
    Nothing,
}

/// One command, from its start to the end of its tree.
async fn attend(
    descriptors: Descriptors,
    limits: &Limits,
    sandbox: &io::Result<Option<Sandbox>>,
    watch: &mut Watch,
) -> io::Result<After> {
    if watch.daemon_is_gone() {
        return Ok(After::Nothing);
    }
    let Descriptors { progress, stdin, stdout, stderr, errand } = descriptors;
    let errand = Errand::from_file(errand)?;
    let started = limits.set().and_then(|()| {
        let mut command = command(&errand)?;
        command.env(PROGRESS_DESCRIPTOR, inherit_progress(&progress)?.to_string());
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        start(command, &errand, sandbox)
    });
    drop(progress);
    // What the command owns stays within its reach until the tree has ended.
    let (main, _exposed) = match started {
        Ok(started) => started,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or_default();
            watch.report(&Report::NotStarted { errno, message: error.to_string() }).await;
            watch.report(&Report::TreeEnded { left: 0 }).await;
            // Otherwise it may be the sandbox that failed, and would fail again for every command of this process.
            return Ok(if is_of_program(errno) { After::Another } else { After::Nothing });
        }
    };
    let mut tree = Tree::new(main);
    let mut told = None;
    let why = loop {
        tree.reap();
        // Also when both have happened: what is over was not stopped.
        if let Some(exit) = tree.exit() {
            watch.report(&Report::Exited(exit)).await;
            break Why::CommandOver;
        }
        match told {
            Some(why) => break why,
            None => told = watch.next().await,
        }
    };
    if why == Why::ToldToStop {
        watch.report(&Report::STOPPING).await;
        tree.signal(Signal::TERM);
        // One that was stopped does not see TERM before it goes on.
        tree.signal(Signal::CONT);
        let _ = tokio::time::timeout(errand.grace, empty(&mut tree, watch)).await;
    }
    let left = match tokio::time::timeout(KILL_LIMIT, kill(&mut tree, watch)).await {
        Ok(()) => 0,
        Err(_) => tree.signal(Signal::KILL),
    };
    if why == Why::ToldToStop
        && let Some(exit) = tree.exit()
    {
        watch.report(&Report::Exited(exit)).await;
    }
    watch.report(&Report::TreeEnded { left }).await;
    Ok(match (why, left) {
        (Why::CommandOver, 0) => After::Another,
        (Why::CommandOver | Why::ToldToStop, _) => After::Nothing,
    })
}

/// Starts the command, in the sandbox if there is to be one.
fn start<'a>(
    mut command: Command,
    errand: &Errand,
    sandbox: &'a io::Result<Option<Sandbox>>,
) -> io::Result<(Pid, Option<ExposedPaths<'a>>)> {
    let (child, exposed) = match sandbox {
        Ok(Some(sandbox)) => sandbox.start(command, &errand.own_paths)?,
        Ok(None) => (command.spawn()?, None),
        Err(error) => return Err(io::Error::new(error.kind(), error.to_string())),
    };
    Ok((Pid::from_child(&child), exposed))
}

/// Why the tree has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    CommandOver,
    ToldToStop,
}

/// The command, in a process group of its own and with only its own environment.
fn command(errand: &Errand) -> io::Result<Command> {
    let [program, arguments @ ..] = &errand.argv[..] else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(errand.environment.iter().map(|(name, value)| (name, value)));
    command.current_dir(&errand.working_directory).process_group(0);
    if let Some((uid, gid)) = errand.run_as {
        // The other groups of root go with it.
        command.uid(uid).gid(gid);
    }
    Ok(command)
}

/// Waits until nothing is left.
async fn empty(tree: &mut Tree, watch: &mut Watch) {
    while tree.reap() == Left::Some {
        watch.child_ended().await;
    }
}

/// Kills until nothing is left: what forks faster than it is found is found again.
async fn kill(tree: &mut Tree, watch: &mut Watch) {
    loop {
        tree.signal(Signal::KILL);
        if tree.reap() == Left::Nothing {
            return;
        }
        let _ = tokio::time::timeout(LOOK_AGAIN, watch.child_ended()).await;
    }
}

/// What the supervisor waits for.
struct Watch {
    daemon: UnixStream,
    children: Signals,
    terminate: Signals,
    interrupt: Signals,
    hangup: Signals,
}

impl Watch {
    fn new() -> io::Result<Self> {
        let daemon = std::os::unix::net::UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        daemon.set_nonblocking(true)?;
        Ok(Self {
            daemon: UnixStream::from_std(daemon)?,
            children: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next command; none if the daemon is gone, or if there is to be none.
    async fn descriptors(&mut self) -> io::Result<Option<Descriptors>> {
        let daemon = &self.daemon;
        tokio::select! {
            received = daemon.async_io(Interest::READABLE, || Descriptors::receive(daemon.as_fd())) => received,
            _ = self.terminate.recv() => Ok(None),
            _ = self.interrupt.recv() => Ok(None),
            _ = self.hangup.recv() => Ok(None),
        }
    }

    /// Waits for something to happen; says so if it is a reason to stop.
    async fn next(&mut self) -> Option<Why> {
        let mut nothing = [0];
        tokio::select! {
            _ = self.children.recv() => None,
            // The daemon never says a word: whatever comes is the end of it, as is an error.
            _ = self.daemon.read(&mut nothing) => Some(Why::ToldToStop),
            _ = self.terminate.recv() => Some(Why::ToldToStop),
            _ = self.interrupt.recv() => Some(Why::ToldToStop),
            _ = self.hangup.recv() => Some(Why::ToldToStop),
        }
    }

    /// Whether it went before the command was started.
    fn daemon_is_gone(&self) -> bool {
        match self.daemon.try_read(&mut [0]) {
            Ok(_) => true,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    async fn child_ended(&mut self) {
        self.children.recv().await;
    }

    /// A daemon that is gone needs no report.
    async fn report(&mut self, report: &Report) {
        let _ = self.daemon.write_all(report.to_line().as_bytes()).await;
    }
}

impl From<rustix::process::WaitStatus> for Exit {
    fn from(status: rustix::process::WaitStatus) -> Self {
        match status.exit_status() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.terminating_signal().unwrap_or_default()),
        }
    }
}
