//! Whether the program of a command is there, looked for as the system does when the command is started.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{ProcessSettings, Program};

/// Where programs are looked for by a command that has no PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

impl ProcessSettings {
    /// Why the program of this command cannot be started, if it is always the same one and is not there.
    pub fn missing_program(&self) -> Option<String> {
        match &self.program {
            Program::Fixed(argv) => self.missing(argv.first()?),
            Program::FromJob => None,
        }
    }

    /// The same for a program of this name.
    pub fn missing(&self, program: &str) -> Option<String> {
        let cwd = &self.working_directory;
        if self.finds(program, cwd) {
            return None;
        }
        Some(if program.contains('/') {
            format!("{} is not an executable file", cwd.join(program).display())
        } else {
            format!("no program {program:?} is found in PATH ({})", self.search_path().to_string_lossy())
        })
    }

    /// Whether a command in this directory finds a program of this name.
    pub(crate) fn finds(&self, program: &str, cwd: &Path) -> bool {
        if program.contains('/') {
            return is_program(&cwd.join(program));
        }
        env::split_paths(&self.search_path()).any(|directory| is_program(&cwd.join(directory).join(program)))
    }

    /// The PATH that the command will have.
    pub(crate) fn search_path(&self) -> OsString {
        let inherited = self.inherited.iter().any(|variable| variable == "PATH");
        let set = self.environment.get("PATH").map(OsString::from);
        set.or_else(|| env::var_os("PATH").filter(|_| inherited)).unwrap_or_else(|| DEFAULT_PATH.into())
    }
}

/// Whether a file is there that somebody may execute.
pub(crate) fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
