//! Which sandbox this system has: each method is tried by a supervisor that runs nothing.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::supervisor::VERB;
use super::{SandboxMethod, SandboxSettings, is_root};

/// The first method that works here, or why none does.
pub(in super::super) fn probe(supervisor: &Path, protected: &[PathBuf]) -> Result<SandboxSettings, String> {
    let mut why = String::new();
    for &method in methods() {
        let settings = SandboxSettings { method, protected: protected.to_vec() };
        match try_out(supervisor, &settings) {
            Ok(()) => return Ok(settings),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

/// What protects most comes first. In a user namespace root could start no command as another user.
fn methods() -> &'static [SandboxMethod] {
    use SandboxMethod::{Cover, Siblings, UserNamespace};
    if is_root() { &[Cover, Siblings] } else { &[UserNamespace, Siblings] }
}

fn try_out(supervisor: &Path, settings: &SandboxSettings) -> io::Result<()> {
    let tried = Command::new(supervisor)
        .arg(VERB)
        .args(settings.arguments())
        .arg("--probe")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .output()?;
    if tried.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&tried.stderr);
    Err(io::Error::other(told.trim().trim_start_matches("longhaul: ").to_owned()))
}

impl SandboxSettings {
    /// The arguments of the supervisor that stand for them.
    pub(in super::super) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["--sandbox".into(), self.method.as_str().into()];
        for path in &self.protected {
            arguments.push("--protect".into());
            arguments.push(path.into());
        }
        arguments
    }
}
