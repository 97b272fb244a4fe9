//! A PostgreSQL of a test's own, for tests that stop it: its programs are found on this machine, and it never runs as root.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Ports that are tried.
const TRIES: u16 = 20;
/// Seconds that the server may take to start or to stop.
const PATIENCE_SECONDS: &str = "60";

/// A server that ends with its guard.
pub struct Cluster {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    /// The process that writes the log behind everybody's back, once it is stopped.
    stopped_log_writer: OnceLock<String>,
}

impl Cluster {
    /// Makes an empty one and starts it, with fsync on.
    pub fn start() -> Self {
        Self::start_in(&std::env::temp_dir())
    }

    /// The same in a folder of its own in this one, which the server's user must be able to enter.
    pub fn start_in(place: &Path) -> Self {
        let programs = programs().expect("initdb is on this machine; scripts/test installs it");
        let folder = TempDir::new_in(place).expect("there is room");
        let mut cluster = Self { folder, programs, port: 0, stopped_log_writer: OnceLock::new() };
        cluster.give(cluster.folder.path());
        let data = cluster.data();
        let made = cluster
            .program("initdb", &["-D", &data, "-U", "longhaul", "-A", "trust", "-E", "UTF8", "--locale=C"]);
        assert!(made, "initdb makes a cluster in {data}");
        // Below what the system gives out by itself: none of these becomes somebody's own end of a connection.
        let first = 20_000 + u16::try_from(std::process::id() % 12_000).unwrap_or_default();
        for port in first..first + TRIES {
            cluster.port = port;
            if cluster.control("start") {
                return cluster;
            }
        }
        panic!("no port of {TRIES} from {first} on is free");
    }

    /// Its address.
    pub fn address(&self) -> String {
        format!("postgres://longhaul@127.0.0.1:{}/postgres", self.port)
    }

    /// Where it keeps everything.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Gives a file or folder to the user that it runs as.
    pub fn give(&self, path: &Path) {
        if is_root() {
            let given = Command::new("chown").arg(user()).arg(path).status();
            assert!(given.expect("chown runs").success(), "{} is given to {}", path.display(), user());
        }
    }

    /// From now until it crashes, the log is written only by those who wait for it.
    pub fn stop_log_writer(&self) {
        let pid = self.log_writer().expect("the server has a process that writes its log");
        signal("-STOP", &pid);
        self.stopped_log_writer.set(pid).expect("it is stopped once");
    }

    /// Ends it as a crash would, and starts it again.
    pub fn crash_and_restart(&self) {
        if let Some(pid) = self.stopped_log_writer.get() {
            // The server would wait for it. The death of one of its processes is a crash to it.
            signal("-KILL", pid);
        }
        assert!(self.control("stop"), "it stops");
        assert!(self.control("start"), "it starts again");
    }

    fn log_writer(&self) -> Option<String> {
        let lock = std::fs::read_to_string(format!("{}/postmaster.pid", self.data())).ok()?;
        let server = lock.lines().next()?;
        let children = std::fs::read_to_string(format!("/proc/{server}/task/{server}/children")).ok()?;
        let title = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        children.split_whitespace().find(|pid| title(pid).contains("walwriter")).map(str::to_owned)
    }

    fn control(&self, verb: &str) -> bool {
        let folder = self.folder.path().display();
        let settings = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c max_connections=100",
            self.port
        );
        let (data, log) = (self.data(), format!("{}/log", self.data()));
        let mut arguments = vec!["-D", &data, "-w", "-t", PATIENCE_SECONDS];
        match verb {
            "stop" => arguments.extend(["-m", "immediate"]),
            _ => arguments.extend(["-l", &log, "-o", &settings]),
        }
        arguments.push(verb);
        self.program("pg_ctl", &arguments)
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    /// Whether it succeeded.
    fn program(&self, name: &str, arguments: &[&str]) -> bool {
        let program = self.programs.join(name);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args([&format!("--reuid={}", user()), "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        let quiet = command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        quiet.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.control("stop");
    }
}

fn signal(name: &str, pid: &str) {
    let sent = Command::new("kill").args([name, pid]).status();
    assert!(sent.expect("kill runs").success(), "process {pid} is signalled");
}

/// Where the newest of them are.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| Some((version.file_name().to_str()?.parse().ok()?, version.path().join("bin"))))
        .filter(|(_, programs)| programs.join("initdb").exists())
        .collect();
    found.sort();
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(|folder| folder.join("initdb").exists())
    };
    found.pop().map(|(_, programs)| programs).or_else(on_path)
}

fn is_root() -> bool {
    Path::new("/proc/self").metadata().is_ok_and(|own| own.uid() == 0)
}

fn user() -> &'static str {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    if users.lines().any(|line| line.starts_with("postgres:")) { "postgres" } else { "nobody" }
}
