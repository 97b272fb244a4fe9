//! The kernel's limits of a command. The supervisor sets them on itself before it starts the command, which inherits them for good.
//!
//! Over the supervisor's command line they are words like `--memory-bytes 1000000`.

use std::io;

use domain::limit::{LimitOwner, LimitValue, NamedLimit};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use rustix::thread::set_no_new_privs;

use super::report::Exit;
use super::settings::{Limits, NewPrivileges};

/// Programs that close every descriptor that they might have are slow where there may be a billion.
const MOST_OPEN_FILES: u64 = 65_536;
/// Between the signal that names the limit of processor time and KILL, which names none.
const CPU_GRACE_SECONDS: u64 = 5;
/// A shell whose last command a signal ended exits with this and the number of the signal.
const SHELL_SIGNAL_BASE: i32 = 128;

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
        for (resource, limit) in [(Resource::As, self.memory_bytes), (Resource::Nproc, self.processes)] {
            if let Some(limit) = limit {
                lower(resource, limit)?;
            }
        }
        if let Some(seconds) = self.cpu_seconds {
            // Were both the same, the kernel would send KILL, and nobody could tell why.
            lower_both(Resource::Cpu, seconds, seconds.saturating_add(CPU_GRACE_SECONDS))?;
        }
        match self.new_privileges {
            NewPrivileges::Never => set_no_new_privs(true)?,
            NewPrivileges::Allowed => {}
        }
        Ok(())
    }

    /// The limit that this end of a command tells of, if it does.
    pub(super) fn reached_at(&self, exit: Exit) -> Option<NamedLimit> {
        let seconds = self.cpu_seconds?;
        let signal = Signal::XCPU.as_raw();
        let is_reached = match exit {
            Exit::Signal(ended_by) => ended_by == signal,
            Exit::Code(code) => code == SHELL_SIGNAL_BASE + signal,
        };
        is_reached.then(|| NamedLimit {
            name: "limits.cpu_seconds".into(),
            value: LimitValue::Seconds(seconds),
            owner: LimitOwner::Executor,
            key: "limits.cpu_seconds of the executor in longhaul.yaml".to_owned(),
        })
    }
}

/// Never more than there was.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    lower_both(resource, limit, limit)
}

fn lower_both(resource: Resource, current: u64, maximum: u64) -> io::Result<()> {
    let had = getrlimit(resource);
    let least = |had: Option<u64>, limit: u64| Some(had.map_or(limit, |had| had.min(limit)));
    let (current, maximum) = (least(had.current, current), least(had.maximum, maximum));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_by_the_signal_of_processor_time_names_its_limit() {
        let signal = Signal::XCPU.as_raw();
        let limits = Limits { cpu_seconds: Some(7), ..Limits::default() };
        for (exit, is_named) in [
            (Exit::Signal(signal), true),
            (Exit::Code(128 + signal), true),
            (Exit::Signal(Signal::KILL.as_raw()), false),
            (Exit::Code(1), false),
        ] {
            let value = limits.reached_at(exit).map(|limit| limit.value);
            assert_eq!(value, is_named.then_some(LimitValue::Seconds(7)), "{exit:?}");
        }
        assert_eq!(Limits::default().reached_at(Exit::Signal(signal)), None, "the limit is not ours");
    }
}
