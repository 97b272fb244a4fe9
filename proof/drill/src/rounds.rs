//! The rounds: a while under load, a fault, everything up again, a look. Until the time is over, or enough was found; past the time only
//! for what has to come in one of them.
//!
//! To break things in another way is one more variant of `Fault` and one more arm here; to do something else in between is one more
//! step of `between`.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::backups::Backups;
use crate::figures::Figures;
use crate::finding::Finding;
use crate::inspect::{Extent, Inspector};
use crate::nodes::{Nodes, PAST_LEASE};
use crate::plan::{Fault, Faults, Round};
use crate::plant::{Plant, flip_bit_of_log};
use crate::stage::Stage;

/// Everything is looked at every so many rounds.
const FULL_EVERY: u64 = 20;
/// What has to come is waited for until so many times the time are over.
const MOST_TIMES: u32 = 6;
/// So much that should not be is enough.
pub const ENOUGH_FINDINGS: usize = 50;
/// A node that is to end itself at a named point is killed after this long.
const FAILPOINT_WITHIN: Duration = Duration::from_secs(4);
/// What is left of a drill must be longer than a pause past a lease, or it would end in it.
const PAUSE_NEEDS: Duration = Duration::from_secs(36);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The database's own faults.
pub trait Database: Send + Sync {
    /// The address of the schema that the drill has for itself.
    fn address(&self) -> &str;
    /// Ends all sessions of the nodes; how many there were.
    fn end_sessions(&self) -> Result<u64>;
    /// One more schema on the same server.
    fn another(&self) -> Result<Box<dyn Database>>;
    /// Takes the schema away.
    fn drop_schema(&self) -> Result<()>;
}

/// Everything that a round needs.
pub struct Rounds<'a> {
    pub stage: &'a Stage,
    pub nodes: Nodes<'a>,
    pub inspector: Inspector<'a>,
    pub backups: Backups<'a>,
    pub faults: Faults,
    pub database: Option<&'a dyn Database>,
    pub figures: Figures,
    pub findings: Vec<Finding>,
    /// A lie that was not told yet.
    pub plant: Option<Plant>,
    /// So many there have to be.
    pub at_least: u64,
    pub uses_service: bool,
    /// Seconds until somebody wanted to see the end of it.
    pub interrupted_after: Option<u64>,
}

impl Rounds<'_> {
    /// Goes on until the time is over, enough was found, or nobody wants to know more.
    pub fn run(&mut self, time: Duration, mut show: impl FnMut(&mut Self)) -> Result<()> {
        let began = Instant::now();
        let (until, latest) = (began + time, began + time * MOST_TIMES);
        while self.goes_on(until, latest) {
            let round = self.faults.next();
            let left = until.saturating_duration_since(Instant::now());
            // Past the time a round is as long as any other: what has to come comes under load.
            self.wait(if left.is_zero() { round.work } else { round.work.min(left) });
            self.fault(&round, until)?;
            self.nodes.resume_due();
            self.between()?;
            self.figures.rounds += 1;
            let extent =
                if self.figures.rounds.is_multiple_of(FULL_EVERY) { Extent::Full } else { Extent::Touched };
            self.look(extent)?;
            show(self);
        }
        Ok(())
    }

    fn goes_on(&self, until: Instant, latest: Instant) -> bool {
        let now = Instant::now();
        let has_time = now < until || (now < latest && self.has_to_go_on());
        has_time && !self.stage.is_over() && self.findings.len() < ENOUGH_FINDINGS
    }

    /// Whether there were fewer rounds than asked for, or a planted lie is not told, or not where it can be seen.
    fn has_to_go_on(&self) -> bool {
        self.figures.rounds < self.at_least || self.plant.is_some() || self.backups.holds_a_lie()
    }

    /// Under load, with nothing broken but what is paused.
    fn wait(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.stage.is_over() {
            self.nodes.resume_due();
            std::thread::sleep(LOOK_AGAIN.min(time));
        }
    }

    fn fault(&mut self, round: &Round, until: Instant) -> Result<()> {
        // All but one may be paused: then it is the others' turn.
        let Some(node) = self.nodes.awake(round.node) else { return Ok(()) };
        match &round.fault {
            Fault::Kill => self.kill(node),
            Fault::KillAll => {
                self.figures.fault("kill all");
                for node in 0..self.nodes.count() {
                    self.figures.kills += 1;
                    self.nodes.kill(node);
                }
                for node in 0..self.nodes.count() {
                    let took = self.nodes.start(node)?;
                    self.figures.recovered(took);
                }
                Ok(())
            }
            Fault::KillInStart { after } => {
                self.figures.fault("kill in start");
                self.figures.kills += 1;
                self.nodes.kill(node);
                self.nodes.begin(node, None)?;
                std::thread::sleep(*after);
                self.figures.kills_in_start += 1;
                self.nodes.kill(node);
                let took = self.nodes.start(node)?;
                self.figures.recovered(took);
                Ok(())
            }
            Fault::Terminate => {
                self.figures.fault("terminate");
                if self.nodes.terminate(node).is_some() {
                    self.figures.terminations += 1;
                } else {
                    self.figures.kills += 1;
                }
                self.nodes.start(node).map(drop)
            }
            Fault::Pause { lasts } => {
                self.figures.fault("pause");
                self.nodes.pause(node, *lasts);
                std::thread::sleep(*lasts);
                Ok(())
            }
            Fault::PausePastLease => {
                let others = (0..self.nodes.count()).filter(|other| *other != node);
                let alone = others.clone().all(|other| self.nodes.awake(other) != Some(other));
                if alone || until.saturating_duration_since(Instant::now()) < PAUSE_NEEDS {
                    return self.kill(node);
                }
                self.figures.fault("pause past lease");
                self.figures.pauses += 1;
                self.nodes.pause(node, PAST_LEASE);
                Ok(())
            }
            Fault::Lose => {
                self.figures.fault("lose node");
                self.figures.lost_nodes += 1;
                let took = self.nodes.lose(node)?;
                self.figures.recovered(took);
                Ok(())
            }
            Fault::EndSessions => {
                self.figures.fault("end sessions");
                if let Some(database) = self.database {
                    self.figures.sessions_ended += database.end_sessions()?;
                }
                Ok(())
            }
            Fault::KillService => {
                self.figures.fault("kill service");
                self.figures.service_kills += 1;
                self.nodes.kill_service();
                self.nodes.start_service().map(drop)
            }
            Fault::Failpoint { name, time } => {
                self.figures.fault("failpoint");
                self.figures.kills += 1;
                self.nodes.kill(node);
                if self.nodes.start_to_end_at(node, (name, *time), FAILPOINT_WITHIN)? {
                    *self.figures.failpoints.entry(name).or_default() += 1;
                } else {
                    self.figures.failpoints_missed += 1;
                    self.figures.kills += 1;
                }
                let took = self.nodes.start(node)?;
                self.figures.recovered(took);
                Ok(())
            }
        }
    }

    fn kill(&mut self, node: usize) -> Result<()> {
        self.figures.fault("kill");
        self.figures.kills += 1;
        self.nodes.kill(node);
        let damages_log = self.plant == Some(Plant::DamageLog);
        if self.plant.is_some_and(Plant::is_done_to_the_store) {
            self.sow()?;
        }
        let took = match self.nodes.start(node) {
            // The log is mended, so that the drill goes on.
            Err(refused) if damages_log && self.plant.is_none() => {
                let what = format!("{refused:#}");
                self.keep(vec![Finding::new("a killed daemon starts again", format!("node {node}"), what)]);
                flip_bit_of_log(&self.nodes.dir(node).join("longhaul.sqlite"))?;
                self.nodes.start(node)?
            }
            started => started?,
        };
        self.figures.recovered(took);
        Ok(())
    }

    /// What is done between two faults besides looking.
    fn between(&mut self) -> Result<()> {
        if self.plant.is_some_and(|plant| !plant.is_done_to_the_store()) {
            self.sow()?;
        }
        if self.backups.is_due(self.figures.rounds) {
            let backup = self.backups.take(self.nodes.dir(0))?;
            self.figures.backups.extend(backup.took);
            self.keep(backup.found);
        }
        Ok(())
    }

    /// A lie is told once.
    fn sow(&mut self) -> Result<()> {
        let Some(plant) = self.plant else { return Ok(()) };
        if plant == Plant::StaleBackup {
            self.backups.take_for_later(self.nodes.dir(0))?;
            self.plant = None;
            return Ok(());
        }
        let file = self.nodes.dir(0).join("longhaul.sqlite");
        if plant.sow(self.stage, &file, self.nodes.service_url().unwrap_or_default())? {
            self.plant = None;
        }
        Ok(())
    }

    /// Looks, and keeps what should not be, once.
    pub fn look(&mut self, extent: Extent) -> Result<()> {
        self.figures.full_looks += u64::from(extent != Extent::Touched);
        let service = self.nodes.service_url().filter(|_| self.uses_service).map(str::to_owned);
        let found = self.inspector.look(extent, service.as_deref())?;
        self.keep(found);
        let open = self.inspector.history.open_jobs().len();
        self.stage.open.store(open, Ordering::SeqCst);
        let over = self.inspector.history.jobs.len() - open;
        let accepted = self.stage.oracle().accepted_count() as u64;
        self.figures.progress.push((self.figures.seconds(), accepted, over as u64));
        Ok(())
    }

    pub fn keep(&mut self, found: Vec<Finding>) {
        for finding in found {
            if !self.findings.contains(&finding) && self.findings.len() < ENOUGH_FINDINGS {
                self.findings.push(finding);
            }
        }
    }
}
