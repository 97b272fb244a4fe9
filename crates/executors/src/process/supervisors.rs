//! Supervisors that wait for their next command. To start one costs more than most commands do, so that one whose command is over is
//! kept for a while.
//!
//! Each has one command at a time. One that was told to stop, that could not start its command, whose tree did not end, or that lives within
//! limits of its own is not kept.
//! One with a sandbox and one without are kept for commands of their own sort.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rustix::net::RecvFlags;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::supervisor::{Descriptors, VERB};
use super::sweep::{DAEMON_ID, SUPERVISOR, daemon_id};
use super::{Limits, ProcessHost, ProcessSettings, SandboxSettings};

/// How long one waits for a command before it is let go.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// Those that wait at the same time.
const MAX_KEPT: usize = 32;

/// A supervisor, and our end of the line to it. Closing it ends what it supervises, and the supervisor.
pub(super) struct Supervisor {
    pub process: Child,
    pub socket: UnixStream,
}

/// Those that wait.
#[derive(Default)]
pub(super) struct Supervisors {
    waiting: Mutex<Vec<Waiting>>,
}

struct Waiting {
    supervisor: Supervisor,
    confined: Confined,
    since: Instant,
}

/// Whether its commands are in a sandbox.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Confined {
    Yes,
    No,
}

impl Supervisors {
    /// Sends one that waits, or a new one, with these descriptors.
    pub(super) fn send(
        &self,
        host: &ProcessHost,
        settings: &ProcessSettings,
        descriptors: &Descriptors,
    ) -> io::Result<Supervisor> {
        let sandbox = host.sandbox_of(settings);
        while is_usual(&settings.limits)
            && let Some(supervisor) = self.take(sandbox.into())
        {
            // One that was killed while it waited takes nothing.
            if descriptors.send(supervisor.socket.as_fd()).is_ok() {
                return Ok(supervisor);
            }
        }
        start(host, &settings.limits, sandbox, descriptors)
    }

    /// Keeps one whose command is over, with all that it started.
    pub(super) fn keep(
        self: &Arc<Self>,
        supervisor: Supervisor,
        host: &ProcessHost,
        settings: &ProcessSettings,
    ) {
        let mut waiting = self.lock();
        if !is_usual(&settings.limits) || waiting.len() >= MAX_KEPT {
            return;
        }
        let confined = host.sandbox_of(settings).into();
        waiting.push(Waiting { supervisor, confined, since: Instant::now() });
        drop(waiting);
        let all = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT_FOR).await;
            if let Some(all) = all.upgrade() {
                all.lock().retain(|waiting| waiting.since.elapsed() < KEPT_FOR);
            }
        });
    }

    /// The one that came last, so that those nobody needs are let go.
    fn take(&self, confined: Confined) -> Option<Supervisor> {
        let mut waiting = self.lock();
        while let Some(last) = waiting.iter().rposition(|waiting| waiting.confined == confined) {
            let Waiting { supervisor, .. } = waiting.remove(last);
            // It says nothing while it waits: whatever can be read is its end. The kernel is asked, the runtime may not have heard.
            let heard = rustix::net::recv(&supervisor.socket, &mut [0; 1][..], RecvFlags::DONTWAIT);
            if matches!(heard, Err(rustix::io::Errno::AGAIN)) {
                return Some(supervisor);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().expect("no holder of the lock panics")
    }
}

impl From<Option<&SandboxSettings>> for Confined {
    fn from(sandbox: Option<&SandboxSettings>) -> Self {
        if sandbox.is_some() { Self::Yes } else { Self::No }
    }
}

/// Limits cannot be taken back: only who has none but the usual ones can have another command.
fn is_usual(limits: &Limits) -> bool {
    *limits == Limits::default()
}

/// The command's descriptors wait in the socket before the supervisor is there.
fn start(
    host: &ProcessHost,
    limits: &Limits,
    sandbox: Option<&SandboxSettings>,
    descriptors: &Descriptors,
) -> io::Result<Supervisor> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    descriptors.send(ours.as_fd())?;
    ours.set_nonblocking(true)?;
    let process = Command::new(&host.supervisor)
        .arg(VERB)
        .args(limits.arguments())
        .args(sandbox.map(SandboxSettings::arguments).unwrap_or_default())
        .env_clear()
        .env(DAEMON_ID, daemon_id(&host.data_dir))
        .env(SUPERVISOR, "1")
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(Supervisor { process, socket: UnixStream::from_std(ours)? })
}
