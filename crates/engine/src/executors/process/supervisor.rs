//! The supervisor: a small process of our own binary that stands between the daemon and one command.
//!
//! It adopts every descendant that loses its parent, so that none can leave the tree, and it exits only when the tree is empty: when the
//! command is over the rest is killed; when told to stop, or when the daemon is gone, all get TERM, and KILL after the grace.
//! It holds no end of the command's pipes, and never speaks to the store.

mod descriptors;
mod tree;

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, set_child_subreaper, setsid};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

use super::progress_lines::PROGRESS_DESCRIPTOR;
use super::report::{Exit, Report};
use super::settings::Limits;
pub(super) use descriptors::Descriptors;
use tree::{Left, Tree};

/// Children that are killed and forked anew are looked for again after this long at the latest.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long killing may take: what is left then hangs in the kernel, and dies when it comes out.
pub(super) const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Runs a command to the end of its tree. The daemon's socket is standard input; the command's descriptors come over it.
pub fn supervise(argv: &[OsString], grace: Duration, limits: &Limits) -> io::Result<()> {
    descriptors::close_inherited()?;
    // Refused to the leader of a process group: then the sweep after a killed supervisor has only the marks to go by.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    let Some(descriptors) = Descriptors::receive(io::stdin().as_fd())? else {
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(argv, grace, limits, descriptors))
}

async fn run(
    argv: &[OsString],
    grace: Duration,
    limits: &Limits,
    descriptors: Descriptors,
) -> io::Result<()> {
    let mut watch = Watch::new()?;
    if watch.daemon_is_gone() {
        return Ok(());
    }
    let main = match limits.set().and_then(|()| start(argv, descriptors)) {
        Ok(main) => main,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or_default();
            watch.report(&Report::NotStarted { errno, message: error.to_string() }).await;
            watch.report(&Report::TreeEnded { left: 0 }).await;
            return Ok(());
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
        watch.report(&Report::Stopping).await;
        tree.signal(Signal::TERM);
        // One that was stopped does not see TERM before it goes on.
        tree.signal(Signal::CONT);
        let _ = tokio::time::timeout(grace, empty(&mut tree, &mut watch)).await;
    }
    let left = match tokio::time::timeout(KILL_LIMIT, kill(&mut tree, &mut watch)).await {
        Ok(()) => 0,
        Err(_) => tree.signal(Signal::KILL),
    };
    if why == Why::ToldToStop
        && let Some(exit) = tree.exit()
    {
        watch.report(&Report::Exited(exit)).await;
    }
    watch.report(&Report::TreeEnded { left }).await;
    Ok(())
}

/// Why the tree has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    CommandOver,
    ToldToStop,
}

/// The command, in a process group of its own and with only its own descriptors.
fn start(argv: &[OsString], descriptors: Descriptors) -> io::Result<Pid> {
    let [program, arguments @ ..] = argv else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let child = Command::new(program)
        .args(arguments)
        .env(PROGRESS_DESCRIPTOR, descriptors.inherit_progress()?.to_string())
        .stdin(Stdio::from(descriptors.stdin))
        .stdout(Stdio::from(descriptors.stdout))
        .stderr(Stdio::from(descriptors.stderr))
        .process_group(0)
        .spawn()?;
    Ok(Pid::from_child(&child))
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
