//! How many connections the process can bear: each takes a file descriptor.

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Connections at the same time, if the config does not say: whoever waits for work holds one.
const DEFAULT_CONNECTIONS: u64 = 16_384;
/// Descriptors for everything else: the store, commands, services, logs.
const FOR_THE_REST: u64 = 512;
/// So many are served in any case.
const FEWEST: u64 = 64;

/// As many connections as were asked for, and as descriptors are left for them once the process has raised its limit.
pub fn connections(wanted: Option<u64>) -> usize {
    let left = left_for(wanted);
    if let Some(wanted) = wanted.filter(|wanted| *wanted > left) {
        crate::log::say!(
            "longhaul: {left} connections instead of {wanted}: raise the limit of open files (ulimit -n)"
        );
    }
    usize::try_from(wanted.unwrap_or(DEFAULT_CONNECTIONS).min(left)).unwrap_or(usize::MAX)
}

/// Has the system make its table of our descriptors as long at once as it may become: it would double it while connections come, and
/// nobody is taken in meanwhile; whoever finds the queue full then comes back a second later. To be called while there is one thread,
/// with which that costs nothing.
pub fn make_room(wanted: Option<u64>) {
    let connections = wanted.unwrap_or(DEFAULT_CONNECTIONS).min(left_for(wanted));
    if let Ok(last) = i32::try_from(connections + FOR_THE_REST - 1) {
        // Closed at once. If it cannot be had, the table grows by and by.
        let _ = fcntl_dupfd_cloexec(std::io::stderr(), last);
    }
}

/// How many descriptors are left for connections.
fn left_for(wanted: Option<u64>) -> u64 {
    let needed = wanted.unwrap_or(DEFAULT_CONNECTIONS).saturating_add(FOR_THE_REST);
    raised(needed.max(DEFAULT_CONNECTIONS * 4)).saturating_sub(FOR_THE_REST).max(FEWEST)
}

/// The limit of open files, raised to what the process may have.
fn raised(wanted: u64) -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (Some(now), most) = (current, maximum.unwrap_or(u64::MAX)) else { return u64::MAX };
    let enough = most.min(wanted);
    if now >= enough {
        return now;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(enough), maximum }) {
        Ok(()) => enough,
        Err(_) => now,
    }
}
