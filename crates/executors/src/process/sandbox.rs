//! The sandbox of commands, plugins and backends: the data directory of the daemon is out of their reach, and so are the daemon and the
//! supervisor themselves. Everything else stays as the operating system allows it.
//!
//! Landlock knows only what is allowed, and a rule on a directory covers everything below it. So the data directory is covered by an empty
//! file system in a mount namespace of the supervisor where that is possible (`cover.rs`), and Landlock (`rules.rs`) keeps the command from
//! taking the cover away, from tracing the daemon and from signalling it. Where no mount is possible, Landlock alone has to do: it allows
//! every entry beside the path to the data directory, as it is at the start of the command.
//!
//! Links in the data directory are followed: what they lead to is protected in the same way (`protected_paths.rs`).
//!
//! Each restriction is on the thread that starts the command, never on the supervisor: it must still end what it started.

mod cover;
mod privileges;
mod probe;
mod protected_paths;
mod rules;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use cover::Cover;
pub(super) use cover::ExposedPaths;
pub use privileges::{RunAs, UserError, hide_from_tracers, is_root};
pub(super) use probe::probe;
pub(super) use protected_paths::ProtectedPaths;

/// The stack of the thread that starts a command.
const STACK_BYTES: usize = 256 * 1024;

/// Whether a command may run without the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxPolicy {
    /// It is refused where the system has no sandbox.
    Required,
    /// It runs without where the system has none; the daemon says so at its start.
    #[default]
    Preferred,
    /// It always runs without.
    Off,
}

/// How the data directory is kept out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxMethod {
    /// Covered in a mount namespace; needs the privilege to mount.
    Cover,
    /// The same in a user namespace; needs no privilege.
    UserNamespace,
    /// Landlock alone: what lies beside the path to the data directory is allowed, entry by entry.
    Siblings,
}

impl SandboxMethod {
    /// Every method.
    pub const ALL: [Self; 3] = [Self::Cover, Self::UserNamespace, Self::Siblings];

    /// As it is named to operators and to the supervisor.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cover => "cover",
            Self::UserNamespace => "user-namespace",
            Self::Siblings => "siblings",
        }
    }

    /// The method of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }
}

/// What a supervisor keeps its commands away from, and how.
#[derive(Clone, Debug)]
pub struct SandboxSettings {
    /// How.
    pub method: SandboxMethod,
    /// Full paths of directories, and of files that links in the data directory lead to.
    pub protected: Vec<PathBuf>,
}

/// The sandbox of one supervisor.
pub(super) struct Sandbox {
    protected: Vec<PathBuf>,
    /// None: Landlock alone does it.
    cover: Option<Cover>,
}

impl Sandbox {
    /// Takes this process, which has no other thread yet, to where its commands will be.
    pub(super) fn enter(settings: &SandboxSettings) -> io::Result<Self> {
        let protected = outermost(&settings.protected);
        let cover = match settings.method {
            SandboxMethod::Cover => Some(Cover::over(&protected, cover::Namespace::Mount)?),
            SandboxMethod::UserNamespace => Some(Cover::over(&protected, cover::Namespace::UserAndMount)?),
            SandboxMethod::Siblings => None,
        };
        Ok(Self { protected, cover })
    }

    /// Starts a command in the sandbox. What it owns in the protected directories is within its reach until the answer is dropped.
    pub(super) fn start<'a>(
        &'a self,
        mut command: Command,
        own: &[PathBuf],
    ) -> io::Result<(Child, Option<ExposedPaths<'a>>)> {
        let own = self.protected_among(own);
        let exposed = self.cover.as_ref().map(|cover| cover.expose(&own)).transpose()?;
        let child = self.within(&own, || command.spawn())?;
        Ok((child, exposed))
    }

    /// Finds out whether a command could be started.
    pub(super) fn try_out(&self) -> io::Result<()> {
        self.within(&[], || Ok(()))
    }

    /// Does something in the sandbox: on a thread of its own, because nobody gets out again. The thread is over before anyone else begins.
    fn within<T: Send>(&self, own: &[PathBuf], act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let confined = || {
            match self.cover {
                Some(_) => rules::allow_everything_in_sight()?,
                None => rules::allow_all_beside(&self.protected, own)?,
            }
            privileges::drop_capabilities()?;
            act()
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, confined)?;
            let panicked = || io::Error::other("the thread that starts commands panicked");
            thread.join().unwrap_or_else(|_| Err(panicked()))
        })
    }

    /// What of these paths has to be exposed. A path above the protected directories, such as the directory that the daemon was started in,
    /// exposes nothing in them, and stands for nothing that does.
    fn protected_among(&self, own: &[PathBuf]) -> Vec<PathBuf> {
        let own: Vec<PathBuf> = own.iter().filter(|path| self.protects(path)).cloned().collect();
        outermost(&own)
    }

    /// Whether a path is below a protected directory. Those directories themselves belong to no command.
    fn protects(&self, path: &Path) -> bool {
        self.protected.iter().any(|protected| path.starts_with(protected) && path != protected)
    }
}

/// Without paths that are below others.
fn outermost(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut sorted = paths.to_vec();
    sorted.sort();
    let mut outermost: Vec<PathBuf> = Vec::new();
    for path in sorted {
        if !outermost.iter().any(|above| path.starts_with(above)) {
            outermost.push(path);
        }
    }
    outermost
}

/// An error of this sandbox, told apart from those of the command itself.
fn unavailable(what: &str, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("the sandbox is not available: {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_others_are_left_out() {
        let paths = ["/a/b", "/a", "/ab", "/c/d"].map(PathBuf::from);
        assert_eq!(outermost(&paths), ["/a", "/ab", "/c/d"].map(PathBuf::from));
    }

    #[test]
    fn own_path_above_the_data_directory_hides_no_other() {
        let sandbox = Sandbox { protected: vec!["/p/data".into()], cover: None };
        let own = ["/p", "/p/data", "/p/data/w/1", "/p/data/w/1/below", "/p/plugins"].map(PathBuf::from);
        assert_eq!(sandbox.protected_among(&own), [PathBuf::from("/p/data/w/1")]);
    }

    #[test]
    fn every_method_is_found_by_its_name() {
        for method in SandboxMethod::ALL {
            assert_eq!(SandboxMethod::parse(method.as_str()), Some(method));
        }
        assert_eq!(SandboxMethod::parse("chroot"), None);
    }
}
