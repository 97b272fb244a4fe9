//! The nodes and the service: started, killed, paused, lost, started again. Clients find where they are now in `Addresses`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::process::{Binary, Process};
use crate::scratch::{LEASE_SECONDS, Scratch};

/// A daemon that takes longer to be ready does not recover.
pub const READY_WITHIN: Duration = Duration::from_secs(60);
/// A daemon that was asked to stop lets its work go on for ten seconds, and a question to a service for thirty.
const STOP_WITHIN: Duration = Duration::from_secs(45);
const MOST_STARTS: usize = 3;
const BETWEEN_STARTS: Duration = Duration::from_millis(100);
/// Longer than a lease, and than whoever holds it may take to say so.
pub const PAST_LEASE: Duration = Duration::from_secs(LEASE_SECONDS + 4);

/// Where the nodes are; none for one that is down.
#[derive(Debug, Default)]
pub struct Addresses(Mutex<Vec<Option<String>>>);

impl Addresses {
    /// A node that should be up, the `turn`th of them.
    pub fn any(&self, turn: u64) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let up: Vec<&String> = all.iter().flatten().collect();
        let place = usize::try_from(turn.checked_rem(up.len() as u64)?).ok()?;
        up.get(place).map(|url| (*url).clone())
    }

    fn set(&self, number: usize, url: Option<String>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() <= number {
            all.resize(number + 1, None);
        }
        all[number] = url;
    }
}

/// All processes of a drill.
pub struct Nodes<'a> {
    binary: &'a Binary,
    scratch: &'a Scratch,
    addresses: &'a Addresses,
    /// The database that they share; each has a file of its own without it.
    database: Option<&'a str>,
    nodes: Vec<Node>,
    service: Option<Process>,
    service_url: Option<String>,
    /// How many data directories were given up.
    lost: usize,
}

struct Node {
    dir: PathBuf,
    process: Option<Process>,
    /// Until when it stays paused.
    paused_until: Option<Instant>,
}

impl<'a> Nodes<'a> {
    pub fn new(
        binary: &'a Binary,
        scratch: &'a Scratch,
        addresses: &'a Addresses,
        database: Option<&'a str>,
    ) -> Self {
        Self {
            binary,
            scratch,
            addresses,
            database,
            nodes: Vec::new(),
            service: None,
            service_url: None,
            lost: 0,
        }
    }

    /// Starts the service, where it was before.
    pub fn start_service(&mut self) -> Result<String> {
        let listen =
            self.service_url.as_deref().map_or("127.0.0.1:0", |url| url.trim_start_matches("http://"));
        let state = self.scratch.dir.join("service.state");
        let arguments: Vec<OsString> =
            ["drill-service".into(), "--listen".into(), listen.into(), "--state".into(), state.into()].into();
        for _ in 0..MOST_STARTS {
            let mut service = self.binary.start(&arguments, &self.scratch.dir, None)?;
            if service.ready(READY_WITHIN) {
                let url = service.url.clone().context("it has said where it is")?;
                self.service = Some(service);
                self.service_url = Some(url.clone());
                return Ok(url);
            }
            std::thread::sleep(BETWEEN_STARTS);
        }
        bail!("the service does not start; see {}", self.scratch.dir.join("log").display())
    }

    /// kill -9 of the service.
    pub fn kill_service(&mut self) {
        self.service = None;
    }

    pub fn service_url(&self) -> Option<&str> {
        self.service_url.as_deref()
    }

    /// One more node, started.
    pub fn add(&mut self) -> Result<Duration> {
        let number = self.nodes.len();
        let dir = self.scratch.node(&format!("node-{number}"));
        std::fs::create_dir_all(&dir)?;
        self.nodes.push(Node { dir, process: None, paused_until: None });
        self.start(number)
    }

    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    pub fn dir(&self, number: usize) -> &std::path::Path {
        &self.nodes[number].dir
    }

    pub fn url(&self, number: usize) -> Option<&str> {
        self.nodes[number].process.as_ref()?.url.as_deref()
    }

    /// One that is neither down nor paused: the first of them from this one on.
    pub fn awake(&self, from: usize) -> Option<usize> {
        let count = self.nodes.len();
        let awake = |number: &usize| {
            let node = &self.nodes[*number];
            node.process.is_some() && node.paused_until.is_none()
        };
        (0..count).map(|step| (from + step) % count).find(awake)
    }

    /// Starts a node and waits until it answers; how long that took. A second try is for one that was hit by a fault of another.
    pub fn start(&mut self, number: usize) -> Result<Duration> {
        let began = Instant::now();
        for _ in 0..MOST_STARTS {
            if self.begin(number, None)?.ready(READY_WITHIN) {
                self.is_up(number);
                return Ok(began.elapsed());
            }
            self.kill(number);
            std::thread::sleep(BETWEEN_STARTS);
        }
        let log = self.nodes[number].dir.join("log");
        bail!("a daemon does not start again; see {}", log.display())
    }

    /// Starts a node that ends itself at a named point. Waits until it has, or for the time; whether it ended.
    pub fn start_to_end_at(&mut self, number: usize, point: (&str, u64), within: Duration) -> Result<bool> {
        let process = self.begin(number, Some(point))?;
        if process.ready(READY_WITHIN) {
            self.is_up(number);
        }
        let process = self.nodes[number].process.as_mut().context("it was just started")?;
        let ended = process.ended(within).is_some();
        self.kill(number);
        Ok(ended)
    }

    /// Starts a node and does not wait.
    pub fn begin(&mut self, number: usize, failpoint: Option<(&str, u64)>) -> Result<&mut Process> {
        let node = &mut self.nodes[number];
        let mut arguments: Vec<OsString> =
            ["serve", "--listen", "127.0.0.1:0", "--config"].map(OsString::from).into();
        arguments.push(self.scratch.config().into());
        arguments.extend(["--data-dir".into(), node.dir.clone().into()]);
        if let Some(database) = self.database {
            arguments.extend(["--database".into(), database.into()]);
        }
        let process = self.binary.start(&arguments, &node.dir, failpoint)?;
        Ok(node.process.insert(process))
    }

    fn is_up(&mut self, number: usize) {
        self.addresses.set(number, self.url(number).map(str::to_owned));
    }

    /// kill -9.
    pub fn kill(&mut self, number: usize) {
        self.addresses.set(number, None);
        self.nodes[number].process = None;
        self.nodes[number].paused_until = None;
    }

    /// SIGTERM, and at last kill -9. How long it took, if it ended by itself.
    pub fn terminate(&mut self, number: usize) -> Option<Duration> {
        let began = Instant::now();
        let process = self.nodes[number].process.as_mut()?;
        process.signal(Signal::TERM);
        let ended = process.ended(STOP_WITHIN);
        self.kill(number);
        ended.map(|_| began.elapsed())
    }

    /// SIGSTOP. It keeps its address: whoever asks it gets no answer.
    pub fn pause(&mut self, number: usize, lasts: Duration) {
        if let Some(process) = &self.nodes[number].process {
            process.signal(Signal::STOP);
            self.nodes[number].paused_until = Some(Instant::now() + lasts);
        }
    }

    /// SIGCONT for all whose pause is over, or for all.
    pub fn resume(&mut self, all: bool) -> usize {
        let now = Instant::now();
        let mut resumed = 0;
        for node in &mut self.nodes {
            if node.paused_until.is_some_and(|until| all || now >= until) {
                node.paused_until = None;
                resumed += 1;
                if let Some(process) = &node.process {
                    process.signal(Signal::CONT);
                }
            }
        }
        resumed
    }

    /// kill -9 of one whose data directory is never seen again; another begins in its place.
    pub fn lose(&mut self, number: usize) -> Result<Duration> {
        self.kill(number);
        self.lost += 1;
        let dir = self.scratch.node(&format!("node-{number}-{}", self.lost));
        std::fs::create_dir_all(&dir)?;
        self.nodes[number].dir = dir;
        self.start(number)
    }

    /// Every node is up and none is paused.
    pub fn all_up(&mut self) -> Result<()> {
        self.resume(true);
        for number in 0..self.nodes.len() {
            let ended = match &mut self.nodes[number].process {
                Some(process) => process.ended(Duration::ZERO).is_some(),
                None => true,
            };
            if ended {
                self.kill(number);
                self.start(number)?;
            }
        }
        if self.service.is_none() {
            self.start_service()?;
        }
        Ok(())
    }

    /// Ends every process.
    pub fn end(&mut self) {
        for number in 0..self.nodes.len() {
            self.kill(number);
        }
        self.service = None;
    }
}
