//! The real daemon: the binary in a directory of its own, on a port of its own, ended when it is dropped.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// In what the kernel tells programs of their time, on all machines that we are built for.
const TICKS_PER_SECOND: u32 = 100;
/// What it prints before its address when it is ready.
const READY: &str = "longhaul is ready at http://";

/// A daemon that answers requests.
pub struct DaemonProcess {
    child: Child,
    /// From the start of the process to the line that says that it is ready.
    pub ready_after: Duration,
    /// Where it is.
    pub address: Address,
}

/// Where a daemon is, and the token of its administrator.
#[derive(Clone, Serialize, Deserialize)]
pub struct Address {
    /// With its port.
    pub host: String,
    /// Of the administrator.
    pub token: String,
}

/// Whether a daemon takes ready jobs by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dispatch {
    /// It does.
    On,
    /// It does not.
    Off,
}

/// What the system has counted for a process.
#[derive(Clone, Copy)]
pub struct Usage {
    process: u32,
    /// On a processor.
    pub nanoseconds: u64,
    /// How often a thread of the store was woken.
    pub store_wakes: u64,
}

impl DaemonProcess {
    /// Starts it on this directory.
    pub fn start(binary: &Path, data_dir: &Path, dispatch: Dispatch) -> Result<Self> {
        match dispatch {
            Dispatch::On => Self::start_with(binary, data_dir, &[]),
            Dispatch::Off => Self::start_with(binary, data_dir, &["--no-dispatch".as_ref()]),
        }
    }

    /// The same, with more to say to it.
    pub fn start_with(binary: &Path, data_dir: &Path, arguments: &[&OsStr]) -> Result<Self> {
        let mut command = Command::new(binary);
        // Nothing of the user's own settings, and nothing is left behind, however we end.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LONGHAUL_") {
                command.env_remove(name);
            }
        }
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data_dir).args(arguments);
        command.arg("--end-with").arg(std::process::id().to_string());
        command.current_dir(data_dir.parent().unwrap_or(data_dir));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        fs::create_dir_all(data_dir)?;
        let log = data_dir.join("log");
        command.stderr(File::options().create(true).append(true).open(&log)?);
        let begin = Instant::now();
        let mut child = command.spawn().with_context(|| format!("{} cannot be started", binary.display()))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let ready_after = begin.elapsed();
        let Some(host) = line.trim().strip_prefix(READY) else {
            child.kill()?;
            child.wait()?;
            let said = fs::read_to_string(log).unwrap_or_default();
            bail!("the daemon did not become ready; it said {line:?} {said}");
        };
        let token = fs::read_to_string(data_dir.join("admin.token"))?.trim().to_owned();
        let address = Address { host: host.to_owned(), token };
        Ok(Self { child, ready_after, address })
    }

    /// The memory that it has now, in KiB, and the most that it ever had.
    pub fn memory_kib(&self) -> Result<(u64, u64)> {
        let status = fs::read_to_string(self.path("status"))?;
        Ok((number(&status, "VmRSS:")?, number(&status, "VmHWM:")?))
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has used so far.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.child.id())
    }

    /// Ends it without a word.
    pub fn kill(mut self) -> Result<()> {
        Ok(self.child.kill()?)
    }

    fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.child.id()))
    }
}

impl Usage {
    /// What this process has used so far; threads that have ended are not counted.
    pub fn of(process: u32) -> Result<Self> {
        let mut usage = Self { process, nanoseconds: 0, store_wakes: 0 };
        for task in fs::read_dir(format!("/proc/{process}/task"))? {
            let task = task?.path();
            let spent = fs::read_to_string(task.join("schedstat"))?;
            usage.nanoseconds += spent.split(' ').next().context("no time on a processor")?.parse::<u64>()?;
            let name = fs::read_to_string(task.join("comm"))?;
            // The writer, the readers and the checkpointer; the name of the process itself is the binary's.
            if name.starts_with("longhaul-") {
                let status = fs::read_to_string(task.join("status"))?;
                usage.store_wakes += number(&status, "voluntary_ctxt_switches:")?;
            }
        }
        Ok(usage)
    }

    /// Time on a processor since then.
    pub fn since(&self) -> Result<Duration> {
        let now = Self::of(self.process)?;
        Ok(Duration::from_nanos(now.nanoseconds.saturating_sub(self.nanoseconds)))
    }
}

/// Time on a processor of a process and all that it started and that those started, with those of them that have ended.
pub fn time_of_tree(root: u32) -> Result<Duration> {
    let mut processes = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        // One that has just ended is counted with its parent.
        let Ok(line) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, fields)) = line.rsplit_once(") ") else { continue };
        let fields: Vec<&str> = fields.split(' ').collect();
        let number =
            |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        processes.push((id, number(1), (11..=14).map(number).sum::<u64>()));
    }
    let (mut tree, mut ticks) = (vec![root], 0);
    while let Some(one) = tree.pop() {
        tree.extend(processes.iter().filter(|(_, parent, _)| *parent == u64::from(one)).map(|(id, ..)| *id));
        ticks += processes.iter().find(|(id, ..)| *id == one).map_or(0, |(_, _, ticks)| *ticks);
    }
    Ok(Duration::from_secs(ticks) / TICKS_PER_SECOND)
}

impl Drop for DaemonProcess {
    /// Asks it to stop, and waits for it.
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

fn number(text: &str, name: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
