//! A daemon of the real binary, and the command line against it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");
pub const MIB: u64 = 1_048_576;

/// A daemon, killed when it is dropped.
pub struct Daemon {
    child: Child,
    dir: PathBuf,
    pub url: String,
}

/// The exit code of a wait whose time is over.
const TIMED_OUT: i32 = 124;
/// Between two looks: whoever looks all the time keeps the others from their work.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The binary with nothing of the tester's own settings. Most tests have their commands leave something in the data directory, which
/// only commands outside of the sandbox can; `confined` is for the others.
pub fn binary(arguments: &[&str]) -> Command {
    let mut command = Command::new(LONGHAUL);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LONGHAUL_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null()).env("LONGHAUL_SANDBOX", "off");
    command
}

/// One command to its end.
pub fn longhaul(dir: &Path, arguments: &[&str]) -> Output {
    binary(arguments).env("LONGHAUL_DATA_DIR", dir).output().expect("the binary runs")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What it printed, if it ended with this code.
#[track_caller]
pub fn expect(code: i32, output: &Output) -> String {
    assert_eq!(output.status.code(), Some(code), "{}{}", stdout(output), stderr(output));
    stdout(output)
}

/// The JSON that it printed.
#[track_caller]
pub fn json(dir: &Path, arguments: &[&str]) -> Value {
    let printed = expect(0, &longhaul(dir, &[arguments, &["--json"]].concat()));
    serde_json::from_str(&printed).expect("it is JSON")
}

/// Creates a job and gives its id.
#[track_caller]
pub fn create(dir: &Path, arguments: &[&str]) -> String {
    let status = json(dir, &[&["jobs", "create"], arguments].concat());
    status["job_id"].as_str().expect("it has an id").to_owned()
}

#[track_caller]
pub fn show(dir: &Path, id: &str) -> Value {
    json(dir, &["jobs", "show", id])
}

/// Waits for the end, and gives the result if it ended like this.
#[track_caller]
pub fn ended(dir: &Path, id: &str, state: &str) -> Value {
    let waited = longhaul(dir, &["jobs", "wait", id, "--timeout", "2m"]);
    if waited.status.code() == Some(TIMED_OUT) {
        let [why, facts] = ["why", "facts"].map(|verb| stdout(&longhaul(dir, &["jobs", verb, id])));
        panic!("{id} did not end within two minutes:\n{why}\n{facts}");
    }
    let code = i32::from(state != "completed");
    expect(code, &waited);
    let result = json(dir, &["jobs", "result", id]);
    assert_eq!(result["state"], state, "{result}");
    result
}

/// Waits until a job is in a state, woken by the daemon's stream.
#[track_caller]
pub fn until(dir: &Path, id: &str, state: &str) -> Value {
    until_told(dir, id, state, |status| status["state"] == state)
}

/// Waits until whoever follows a job is told this of it.
#[track_caller]
pub fn until_told(dir: &Path, id: &str, what: &str, is_told: impl Fn(&Value) -> bool) -> Value {
    let mut watch = binary(&["jobs", "watch", id, "--json"])
        .env("LONGHAUL_DATA_DIR", dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let lines = BufReader::new(watch.stdout.take().expect("it is ours")).lines();
    let mut seen = Vec::new();
    let mut found = None;
    for line in lines {
        let status: Value = serde_json::from_str(&line.expect("it is text")).expect("it is JSON");
        seen.push((status["state"].to_string(), status["progress"].to_string()));
        if is_told(&status) {
            found = Some(status);
            break;
        }
    }
    // It may have ended by itself.
    let _ = watch.kill();
    watch.wait().expect("it is ours");
    found.unwrap_or_else(|| panic!("{id} was never {what}, but {seen:?}"))
}

/// What a process that we do not drive brings about.
#[track_caller]
pub fn within<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "not within a minute: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Waits until a daemon is over, and gives the signal that ended it.
pub fn until_over(daemon: Daemon) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&daemon.wait())
}

/// The store agrees with its ledger.
#[track_caller]
pub fn verify(dir: &Path) {
    let verified = expect(0, &longhaul(dir, &["verify"]));
    assert!(verified.contains(" 0 differences"), "{verified}");
}

impl Daemon {
    pub fn start(dir: &Path) -> Self {
        Self::start_with(dir, &[])
    }

    /// Ready when this returns.
    #[track_caller]
    pub fn start_with(dir: &Path, arguments: &[&str]) -> Self {
        Self::verb(dir, &[&["serve", "--listen", "127.0.0.1:0"], arguments].concat())
    }

    #[track_caller]
    pub fn verb(dir: &Path, arguments: &[&str]) -> Self {
        Self::spawn(dir, binary(arguments))
    }

    /// What it said instead if it is not ready.
    pub fn try_verb(dir: &Path, arguments: &[&str]) -> Result<Self, String> {
        Self::try_spawn(dir, binary(arguments))
    }

    /// With these variables in its environment.
    #[track_caller]
    pub fn start_under(dir: &Path, environment: &[(&str, PathBuf)]) -> Self {
        let mut command = binary(&["serve", "--listen", "127.0.0.1:0"]);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Self::spawn(dir, command)
    }

    /// Started elsewhere than in its data directory, with commands in the sandbox as if nothing was said of it.
    pub fn confined(data_dir: &Path, started_in: &Path, mut command: Command) -> Result<Self, String> {
        command.env_remove("LONGHAUL_SANDBOX");
        Self::try_spawn_in(data_dir, started_in, command)
    }

    #[track_caller]
    fn spawn(dir: &Path, command: Command) -> Self {
        match Self::try_spawn(dir, command) {
            Ok(daemon) => daemon,
            Err(said) => panic!("{said}"),
        }
    }

    fn try_spawn(dir: &Path, command: Command) -> Result<Self, String> {
        Self::try_spawn_in(dir, dir, command)
    }

    fn try_spawn_in(dir: &Path, started_in: &Path, mut command: Command) -> Result<Self, String> {
        let log = File::options().create(true).append(true).open(dir.join("log")).expect("it is writable");
        let mut child = command
            .arg("--data-dir")
            .arg(dir)
            .current_dir(started_in)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary runs");
        let mut said = BufReader::new(child.stdout.take().expect("it is ours"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it is text");
        let Some(url) = line.trim_end().strip_prefix("longhaul is ready at ") else {
            let _ = child.kill();
            let _ = child.wait();
            let log = std::fs::read_to_string(dir.join("log")).unwrap_or_default();
            return Err(format!("{line:?}\n{log}"));
        };
        let url = url.to_owned();
        // Whatever else it says must not stop it.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Ok(Self { child, dir: dir.to_owned(), url })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The memory that it has now; the most that it has is counted anew from here on.
    pub fn begin_peak(&self) -> u64 {
        std::fs::write(format!("/proc/{}/clear_refs", self.pid()), "5").expect("it is a process of ours");
        self.memory("VmRSS:")
    }

    /// The most memory that it had since then.
    pub fn peak_bytes(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the system tells it");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number") * 1_024
    }

    /// Where what it writes to standard error is.
    pub fn log_path(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// What it wrote to standard error so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).expect("it is there")
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it is ours");
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("it is a process");
        kill_process(pid, signal).expect("it lives");
    }

    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("it is ours")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A plugin of this name whose program is this script.
pub fn plugin(dir: &Path, name: &str, script: &str) {
    let home = dir.join("plugins").join(name);
    std::fs::create_dir_all(&home).expect("there is room");
    let manifest = format!("name: {name}\nprotocol: 2\nentrypoint: run\ncommands: [poll, handle]\n");
    std::fs::write(home.join("manifest.yaml"), manifest).expect("there is room");
    let program = home.join("run");
    std::fs::write(&program, format!("#!/usr/bin/env bash\n{script}\n")).expect("there is room");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}
