//! Backups beside the nodes at work: each is taken, restored elsewhere, verified there, and held against what was acknowledged
//! before it began.
//!
//! Every step is the command that a user would give, in a process of its own. Nothing is broken meanwhile; who is paused stays so.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::checks;
use crate::finding::Finding;
use crate::history::Job;
use crate::inspect::{Extent, Inspector};
use crate::process::Binary;
use crate::rounds::Database;
use crate::stage::Stage;

pub const MADE: &str = "a backup is made beside the daemon, and restored elsewhere";
pub const IN_IT: &str = "a backup holds all that was acknowledged before it";
/// One is due every so many rounds,
const EVERY_ROUNDS: u64 = 4;
/// and not so soon that all of them would take more than one part in so many of the time: the rest is for what is broken.
const PART_OF_TIME: u32 = 8;
/// For one command of a backup.
const WITHIN: Duration = Duration::from_mins(5);

/// Whoever takes backups.
pub struct Backups<'a> {
    binary: &'a Binary,
    stage: &'a Stage,
    database: Option<&'a dyn Database>,
    /// Where they are, and what is restored of them.
    dir: PathBuf,
    begun: u64,
    next: Instant,
    /// An early one that is given out as the next: a lie that must come out red.
    stale: Option<PathBuf>,
}

/// What came of one.
pub struct Backup {
    pub found: Vec<Finding>,
    /// How long the backup itself took, if it was made and could be looked at.
    pub took: Option<Duration>,
}

/// What has to be in a backup.
struct Due {
    /// All that was acknowledged until then,
    until: u64,
    /// and the ends of the jobs that were seen completed, which no later word changes.
    completed: Vec<String>,
}

impl<'a> Backups<'a> {
    pub fn new(
        binary: &'a Binary,
        stage: &'a Stage,
        database: Option<&'a dyn Database>,
        dir: PathBuf,
    ) -> Self {
        Self { binary, stage, database, dir, begun: 0, next: Instant::now(), stale: None }
    }

    /// Takes one now, and gives it out as the next.
    pub fn take_for_later(&mut self, node: &Path) -> Result<()> {
        std::fs::create_dir_all(&self.dir)?;
        let file = self.dir.join("early.backup");
        let failed = self.command("backup", &file, &store(self.database.map(Database::address), node))?;
        self.stale = failed.is_none().then_some(file);
        Ok(())
    }

    /// Whether an early one was not given out yet.
    pub fn holds_a_lie(&self) -> bool {
        self.stale.is_some()
    }

    pub fn is_due(&self, rounds: u64) -> bool {
        rounds % EVERY_ROUNDS == EVERY_ROUNDS - 1 && Instant::now() >= self.next
    }

    /// Takes one of the store that the node in this directory works on, and looks at it.
    pub fn take(&mut self, node: &Path) -> Result<Backup> {
        let began = Instant::now();
        let backup = self.taken(node);
        self.next = Instant::now() + began.elapsed() * (PART_OF_TIME - 1);
        backup
    }

    fn taken(&mut self, node: &Path) -> Result<Backup> {
        self.begun += 1;
        std::fs::create_dir_all(&self.dir)?;
        let file = self.dir.join(format!("{}.backup", self.begun));
        let due = self.due();
        let began = Instant::now();
        let live = store(self.database.map(Database::address), node);
        if let Some(finding) = self.command("backup", &file, &live)? {
            return Ok(Backup { found: vec![finding], took: None });
        }
        let took = began.elapsed();
        if let Some(early) = self.stale.take() {
            std::fs::rename(early, &file)?;
        }
        let dir = self.dir.join(format!("{}.restored", self.begun));
        std::fs::create_dir_all(&dir)?;
        let schema = self.database.map(Database::another).transpose()?;
        let restored = store(schema.as_deref().map(Database::address), &dir);
        let found = match self.command("restore", &file, &restored)? {
            Some(finding) => vec![finding],
            None => self.look(restored, &due)?,
        };
        // What is wrong is kept for whoever wants to know why.
        if found.is_empty() {
            if let Some(schema) = schema {
                schema.drop_schema()?;
            }
            std::fs::remove_dir_all(&dir)?;
            std::fs::remove_file(&file)?;
        }
        Ok(Backup { took: found.is_empty().then_some(took), found })
    }

    fn due(&self) -> Due {
        let oracle = self.stage.oracle();
        let completed = oracle.entries().filter_map(|(_, entry)| {
            let end = entry.end.as_ref()?;
            entry.id().filter(|_| end.state == "completed").map(str::to_owned)
        });
        Due { until: oracle.moment(), completed: completed.collect() }
    }

    /// Gives it to `backup` or `restore`; what is found if that fails.
    fn command(&self, verb: &str, file: &Path, store: &[OsString]) -> Result<Option<Finding>> {
        let mut arguments: Vec<OsString> = vec![verb.into(), file.into()];
        arguments.extend_from_slice(store);
        let output = self.binary.output(&arguments, WITHIN)?;
        let failed = || Finding::new(MADE, self.name(), String::from_utf8_lossy(&output.stderr));
        Ok((!output.status.success()).then(failed))
    }

    fn name(&self) -> String {
        format!("backup {}", self.begun)
    }

    /// What should not be in what was restored, or should be and is not.
    fn look(&self, restored: Vec<OsString>, due: &Due) -> Result<Vec<Finding>> {
        let mut inspector = Inspector::new(self.binary, self.stage, restored);
        inspector.read_ledger(Extent::Full)?;
        let mut broken = inspector.verify(Extent::Full)?;
        let history = &inspector.history;
        broken.extend(checks::all(&self.stage.oracle(), history, due.until));
        let mut found: Vec<Finding> = broken
            .into_iter()
            .map(|finding| {
                Finding::new(
                    IN_IT,
                    finding.record,
                    format!("{}: {}: {}", self.name(), finding.rule, finding.what),
                )
            })
            .collect();
        let open = |id: &&String| history.jobs.get(*id).and_then(Job::end) != Some("completed");
        for id in due.completed.iter().filter(open) {
            let what = format!("{}: it was seen completed before, and is not there", self.name());
            found.push(Finding::new(IN_IT, id, what));
        }
        Ok(found)
    }
}

/// What names a store and the directory beside it.
fn store(database: Option<&str>, dir: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["--data-dir".into(), dir.into()];
    if let Some(address) = database {
        arguments.extend(["--database".into(), address.into()]);
    }
    arguments
}
