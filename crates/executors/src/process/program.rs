//! Whether the program of a command is there, looked for as the system does when the command is started.

use std::env;
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
        if program.contains('/') {
            let file = cwd.join(program);
            return (!is_program(&file)).then(|| format!("{} is not an executable file", file.display()));
        }
        let allowed = self.inherited.iter().any(|variable| variable == "PATH");
        let search = match self.environment.get("PATH") {
            Some(set) => set.into(),
            None => env::var_os("PATH").filter(|_| allowed).unwrap_or_else(|| DEFAULT_PATH.into()),
        };
        let found = env::split_paths(&search).any(|directory| is_program(&cwd.join(directory).join(program)));
        (!found).then(|| format!("no program {program:?} is found in PATH ({})", search.to_string_lossy()))
    }
}

fn is_program(file: &Path) -> bool {
    let any_may_execute = |metadata: &std::fs::Metadata| metadata.permissions().mode() & 0o111 != 0;
    std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && any_may_execute(&metadata))
}
