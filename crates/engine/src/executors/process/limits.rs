//! The kernel's limits of a command. The supervisor sets them on itself before it starts the command, which inherits them for good.
//!
//! Over the supervisor's command line they are words like `--memory-bytes 1000000`.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_no_new_privs;

use super::settings::{Limits, NewPrivileges};

/// Programs that close every descriptor that they might have are slow where there may be a billion.
const MOST_OPEN_FILES: u64 = 65_536;

impl Limits {
    /// The arguments of the supervisor that stand for them.
    pub(super) fn arguments(&self) -> Vec<String> {
        let numbers = [
            ("--memory-bytes", self.memory_bytes),
            ("--cpu-seconds", self.cpu_seconds),
            ("--open-files", self.open_files),
            ("--processes", self.processes),
        ];
        let mut arguments: Vec<String> = numbers
            .into_iter()
            .filter_map(|(name, limit)| Some([name.to_owned(), limit?.to_string()]))
            .flatten()
            .collect();
        match self.new_privileges {
            NewPrivileges::Never => {}
            NewPrivileges::Allowed => arguments.push("--new-privileges".to_owned()),
        }
        arguments
    }

    /// Sets them on this process and whatever it starts from now on.
    pub(super) fn set(&self) -> io::Result<()> {
        lower(Resource::Core, 0)?;
        lower(Resource::Nofile, self.open_files.unwrap_or(MOST_OPEN_FILES))?;
        for (resource, limit) in [
            (Resource::As, self.memory_bytes),
            (Resource::Cpu, self.cpu_seconds),
            (Resource::Nproc, self.processes),
        ] {
            if let Some(limit) = limit {
                lower(resource, limit)?;
            }
        }
        match self.new_privileges {
            NewPrivileges::Never => set_no_new_privs(true)?,
            NewPrivileges::Allowed => {}
        }
        Ok(())
    }
}

/// Never more than there was.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let had = getrlimit(resource);
    let least = |had: Option<u64>| Some(had.map_or(limit, |had| had.min(limit)));
    Ok(setrlimit(resource, Rlimit { current: least(had.current), maximum: least(had.maximum) })?)
}
