//! The nodes and the service: started, killed, paused, lost, started again. Clients find where they are now in `Addresses`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::process::{Binary, Process};
use crate::scratch::{LEASE_SECONDS, Scratch};

/// A daemon that takes longer to be ready does not recover.
pub const READY_WITHIN: Duration = Duration::from_mins(1);
/// A daemon that was asked to stop lets its work go on for ten seconds, and a question to a service for thirty.
const STOP_WITHIN: Duration = Duration::from_secs(45);
const MOST_STARTS: usize = 3;
const ASK_PAUSED_EVERY: u64 = 16;
const BETWEEN_STARTS: Duration = Duration::from_millis(100);
/// Longer than a lease, and than whoever holds it may take to say so.
pub const PAST_LEASE: Duration = Duration::from_secs(LEASE_SECONDS + 4);

/// Where the nodes are; none for one that is down.
#[derive(Debug, Default)]
pub struct Addresses(Mutex<Vec<Option<Address>>>);

#[derive(Clone, Debug)]
struct Address {
    url: String,
    paused: bool,
}

impl Addresses {
    /// A node that should be up, the `turn`th of them. One that is paused is asked now and then only, because whoever asks it waits in
    /// vain.
    pub fn any(&self, turn: u64) -> Option<String> {
        let all = self.all();
        let up: Vec<&Address> = all.iter().flatten().collect();
        let count = up.len() as u64;
        let one = up.get(usize::try_from(turn.checked_rem(count)?).ok()?)?;
        if one.paused && !(turn / count).is_multiple_of(ASK_PAUSED_EVERY) {
            let awake = up.iter().find(|other| !other.paused);
            return Some(awake.unwrap_or(one).url.clone());
        }
        Some(one.url.clone())
    }

    fn set(&self, number: usize, url: Option<String>) {
        let mut all = self.all();
        if all.len() <= number {
            all.resize(number + 1, None);
        }
        all[number] = url.map(|url| Address { url, paused: false });
    }

    fn pause(&self, number: usize) {
        if let Some(Some(address)) = self.all().get_mut(number) {
            address.paused = true;
        }
    }

    fn resume(&self, number: usize) {
        if let Some(Some(address)) = self.all().get_mut(number) {
            address.paused = false;
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Option<Address>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All processes of a drill.
pub struct Nodes<'a> {
    binary: &'a Binary,
    scratch: &'a Scratch,
    addresses: &'a Addresses,
    /// The database that they share; each has a file of its own without it.
    database: Option<&'a str>,
    all: Vec<Node>,
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
            all: Vec::new(),
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
        let number = self.all.len();
        let dir = self.scratch.node(&format!("node-{number}"));
        std::fs::create_dir_all(&dir)?;
        self.all.push(Node { dir, process: None, paused_until: None });
        self.start(number)
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn dir(&self, number: usize) -> &std::path::Path {
        &self.all[number].dir
    }

    pub fn url(&self, number: usize) -> Option<&str> {
        self.all[number].process.as_ref()?.url.as_deref()
    }

    /// One that is neither down nor paused: the first of them from this one on.
    pub fn awake(&self, from: usize) -> Option<usize> {
        let count = self.all.len();
        let awake = |number: &usize| {
            let node = &self.all[*number];
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
        let log = self.all[number].dir.join("log");
        bail!("a daemon does not start again; see {}", log.display())
    }

    /// Starts a node that ends itself at a named point. Waits until it has, or for the time; whether it ended.
    pub fn start_to_end_at(&mut self, number: usize, point: (&str, u64), within: Duration) -> Result<bool> {
        let process = self.begin(number, Some(point))?;
        if process.ready(READY_WITHIN) {
            self.is_up(number);
        }
        let process = self.all[number].process.as_mut().context("it was just started")?;
        let ended = process.ended(within).is_some();
        self.kill(number);
        Ok(ended)
    }

    /// Starts a node and does not wait.
    pub fn begin(&mut self, number: usize, failpoint: Option<(&str, u64)>) -> Result<&mut Process> {
        let node = &mut self.all[number];
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
        self.all[number].process = None;
        self.all[number].paused_until = None;
    }

    /// SIGTERM, and at last kill -9. How long it took, if it ended by itself.
    pub fn terminate(&mut self, number: usize) -> Option<Duration> {
        let began = Instant::now();
        let process = self.all[number].process.as_mut()?;
        process.signal(Signal::TERM);
        let ended = process.ended(STOP_WITHIN);
        self.kill(number);
        ended.map(|_| began.elapsed())
    }

    /// SIGSTOP. It keeps its address: whoever asks it gets no answer.
    pub fn pause(&mut self, number: usize, lasts: Duration) {
        if let Some(process) = &self.all[number].process {
            process.signal(Signal::STOP);
            self.addresses.pause(number);
            self.all[number].paused_until = Some(Instant::now() + lasts);
        }
    }

    /// SIGCONT for those whose pause is over.
    pub fn resume_due(&mut self) {
        self.resume_paused_until(Instant::now());
    }

    /// SIGCONT for those whose pause is over by then.
    fn resume_paused_until(&mut self, now: Instant) {
        for (number, node) in self.all.iter_mut().enumerate() {
            if node.paused_until.is_some_and(|until| now >= until) {
                node.paused_until = None;
                self.addresses.resume(number);
                if let Some(process) = &node.process {
                    process.signal(Signal::CONT);
                }
            }
        }
    }

    /// kill -9 of one whose data directory is never seen again; another begins in its place.
    pub fn lose(&mut self, number: usize) -> Result<Duration> {
        self.kill(number);
        self.lost += 1;
        let dir = self.scratch.node(&format!("node-{number}-{}", self.lost));
        std::fs::create_dir_all(&dir)?;
        self.all[number].dir = dir;
        self.start(number)
    }

    /// Every node is up and none is paused.
    pub fn all_up(&mut self) -> Result<()> {
        self.resume_paused_until(Instant::now() + PAST_LEASE);
        for number in 0..self.all.len() {
            let ended = match &mut self.all[number].process {
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
        for number in 0..self.all.len() {
            self.kill(number);
        }
        self.service = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_asked_in_turn_and_one_that_is_paused_now_and_then() {
        let addresses = Addresses::default();
        assert_eq!(addresses.any(0), None);
        for number in 0..3 {
            addresses.set(number, Some(number.to_string()));
        }
        addresses.set(1, None);
        let asked = || (0..80).filter_map(|turn| addresses.any(turn)).collect::<String>();
        assert_eq!(asked().matches('2').count(), 40);
        addresses.pause(2);
        assert_eq!(asked().matches('2').count(), 3);
        addresses.resume(2);
        assert_eq!(asked().matches('2').count(), 40);
    }
}
