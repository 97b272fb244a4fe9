//! Privileges around commands: who may look into the daemon, which capabilities a command of root keeps, and which user it runs as.

use std::io;
use std::path::PathBuf;

use nix::unistd::{Gid, Group, Uid, User};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
};

/// What would let a command of root reach the data directory or the daemon past the sandbox.
const DROPPED: [CapabilitySet; 8] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::DAC_READ_SEARCH,
    CapabilitySet::PERFMON,
    CapabilitySet::BPF,
    CapabilitySet::CHECKPOINT_RESTORE,
];

/// Keeps processes of the same user from reading this one's memory, environment and descriptors.
pub fn hide_from_tracers() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Takes the capabilities from this thread, for good, and from what it starts.
pub(super) fn drop_capabilities() -> io::Result<()> {
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    let dropped = DROPPED.into_iter().fold(CapabilitySet::empty(), CapabilitySet::union);
    if effective.contains(CapabilitySet::SETPCAP) {
        for one in DROPPED {
            match remove_capability_from_bounding_set(one) {
                // A kernel that does not know it does not give it.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let without = CapabilitySets {
        effective: effective - dropped,
        permitted: permitted - dropped,
        inheritable: inheritable - dropped,
    };
    Ok(set_capabilities(None, without)?)
}

/// The user that a command runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// The user.
    pub uid: u32,
    /// The only group.
    pub gid: u32,
    /// Its home directory, if it has one.
    pub home: Option<PathBuf>,
}

/// Why a command cannot run as somebody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserError {
    /// Only root may.
    #[error(
        "only a daemon that runs as root can start commands as another user; start it as root, or leave run_as out"
    )]
    NotRoot,
    /// There is no such user.
    #[error("there is no user {0:?} on this system; create it, or give its number as UID:GID")]
    UnknownUser(String),
    /// There is no such group.
    #[error("there is no group {0:?} on this system; create it, or give its number as UID:GID")]
    UnknownGroup(String),
}

impl RunAs {
    /// A user by name or number, with a group after a colon or the user's own.
    pub fn resolve(text: &str) -> Result<Self, UserError> {
        if !is_root() {
            return Err(UserError::NotRoot);
        }
        let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
        let unknown = || UserError::UnknownUser(user.to_owned());
        let found = match user.parse() {
            Ok(uid) => User::from_uid(Uid::from_raw(uid)),
            Err(_) => User::from_name(user),
        };
        let found = found.ok().flatten();
        let gid = match (group, &found) {
            (Some(group), _) => group_of(group)?,
            (None, Some(found)) => found.gid,
            (None, None) => return Err(unknown()),
        };
        let uid = match (&found, user.parse()) {
            (Some(found), _) => found.uid.as_raw(),
            (None, Ok(uid)) => uid,
            (None, Err(_)) => return Err(unknown()),
        };
        Ok(Self { uid, gid: gid.as_raw(), home: found.map(|found| found.dir) })
    }
}

fn group_of(group: &str) -> Result<Gid, UserError> {
    if let Ok(gid) = group.parse() {
        return Ok(Gid::from_raw(gid));
    }
    let found = Group::from_name(group).ok().flatten();
    found.map(|found| found.gid).ok_or_else(|| UserError::UnknownGroup(group.to_owned()))
}

/// Whether this process may become another user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
