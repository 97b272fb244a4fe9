//! Child processes of our own binary: started, told what they are told, and never left behind.
//!
//! Each is in a process group of its own, so that Ctrl-C reaches the drill alone, and ends with the drill, however that ends
//! (`--end-with`).

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::plan::FAILPOINTS;

/// The environment variable that names where a process ends itself: `name=time`.
pub const FAILPOINT: &str = "LONGHAUL_FAILPOINT";
/// A log that is longer is begun anew.
const MAX_LOG_BYTES: u64 = 64 * 1_048_576;
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The program that is drilled.
#[derive(Clone, Debug)]
pub struct Binary(pub std::path::PathBuf);

impl Binary {
    /// A command with nothing of the user's own settings.
    fn command(&self, arguments: &[OsString]) -> Command {
        let mut command = Command::new(&self.0);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LONGHAUL_") {
                command.env_remove(name);
            }
        }
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs one to its end, for at most so long.
    pub fn output(&self, arguments: &[OsString], within: Duration) -> Result<Output> {
        let mut command = self.command(arguments);
        let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let pid = Pid::from_child(&child);
        // Reads both ends while it waits; whoever takes too long is ended.
        let (done, waited) = channel();
        let reader = std::thread::spawn(move || {
            let output = child.wait_with_output();
            let _ = done.send(());
            output
        });
        if waited.recv_timeout(within) == Err(RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::KILL);
            let _ = reader.join();
            bail!("{} took longer than {within:?}", shown(arguments));
        }
        let output = reader.join().ok().context("the reader ended")?;
        output.with_context(|| format!("{} could not be run", shown(arguments)))
    }

    /// Starts one that stays.
    pub fn start(
        &self,
        arguments: &[OsString],
        dir: &Path,
        failpoint: Option<(&str, u64)>,
    ) -> Result<Process> {
        let log = dir.join("log");
        let too_long = std::fs::metadata(&log).is_ok_and(|log| log.len() > MAX_LOG_BYTES);
        let log = File::options().create(true).append(!too_long).write(true).truncate(too_long).open(log)?;
        let mut command = self.command(arguments);
        command.arg("--end-with").arg(std::process::id().to_string());
        if let Some((name, time)) = failpoint {
            debug_assert!(FAILPOINTS.contains(&name), "{name} is a point");
            command.env(FAILPOINT, format!("{name}={time}"));
        }
        let child = command
            .current_dir(dir)
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("{} could not be started", shown(arguments)))?;
        Ok(Process { child, url: None })
    }
}

fn shown(arguments: &[OsString]) -> String {
    arguments.first().map(|verb| verb.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A process that stays until it is ended; dropped, it is killed.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Where it is reached, once it has said so.
    pub url: Option<String>,
}

impl Process {
    /// Waits for the line that says where it is reached. False if it has ended instead, or the time is over.
    pub fn ready(&mut self, within: Duration) -> bool {
        let Some(stdout) = self.child.stdout.take() else { return self.url.is_some() };
        let (said, heard) = channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stdout);
            let mut line = String::new();
            let _ = lines.read_line(&mut line);
            let _ = said.send(line);
            // Whatever else it says must not stop it.
            let _ = std::io::copy(&mut lines, &mut std::io::sink());
        });
        let line = heard.recv_timeout(within).unwrap_or_default();
        self.url =
            line.trim_end().rsplit(' ').next().filter(|url| url.starts_with("http://")).map(str::to_owned);
        self.url.is_some()
    }

    pub fn signal(&self, signal: Signal) {
        // One that has ended by itself is not there any more, and not buried either: the signal hits nobody else.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// kill -9, and its burial.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until it has ended by itself.
    pub fn ended(&mut self, within: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + within;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
