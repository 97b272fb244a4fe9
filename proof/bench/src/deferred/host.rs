//! A daemon whose connectors ask the bench's service, and what its ledger says of the polls.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use domain::Timestamp;
use rusqlite::{Connection, OpenFlags};

use super::open::Open;
use crate::daemon::Place;
use crate::daemon::process::DaemonProcess;

/// More open operations than a bench makes.
const MAX_OPEN: u32 = 4_000_000;
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The service of this kind never answers.
pub const HUNG: &str = "hung";
/// Services of kinds that begin so take a moment.
pub const PACED: &str = "paced";

/// The directory of a daemon and its files.
pub struct Host {
    pub data_dir: PathBuf,
    config: PathBuf,
}

/// One poll, as the ledger has it.
pub struct Poll {
    pub kind: String,
    pub due_at: Timestamp,
    /// When its answer was written down.
    pub at: Timestamp,
}

impl Poll {
    /// In milliseconds.
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn lateness(&self) -> f64 {
        (self.at.micros() - self.due_at.micros()) as f64 / 1_000.0
    }
}

impl Host {
    /// A new directory, filled with these operations, with a connector for each of their kinds.
    pub fn filled(place: &Place, name: &str, open: Open) -> Result<Self> {
        let host = Self { data_dir: place.fresh(name)?, config: place.scratch.join(format!("{name}.yaml")) };
        host.write_config(place, name, &open)?;
        open.fill(place, &host.data_dir)?;
        Ok(host)
    }

    fn write_config(&self, place: &Place, name: &str, open: &Open) -> Result<()> {
        let in_all = open.at_once.in_all;
        let mut config = format!(
            "policy:\n  max_open_total: {MAX_OPEN}\n  max_concurrent_polls_total: {in_all}\nconnectors:\n"
        );
        for (kind, _) in &open.kinds {
            let file = format!("{name}-{kind}.connector.yaml");
            writeln!(config, "  - {file}")?;
            std::fs::write(place.scratch.join(file), connector(kind, open))?;
        }
        Ok(std::fs::write(&self.config, config)?)
    }

    pub fn start(&self, place: &Place) -> Result<DaemonProcess> {
        DaemonProcess::start_with(
            &place.binary,
            &self.data_dir,
            &["--config".as_ref(), self.config.as_os_str()],
        )
    }

    /// Waits until so many operations were asked about and answered.
    pub fn until_answered(&self, count: usize, patience: Duration) -> Result<()> {
        let store = self.reading()?;
        let begin = Instant::now();
        loop {
            let running: i64 =
                store.query_row("SELECT count(*) FROM operations WHERE status = 'running'", [], |row| {
                    row.get(0)
                })?;
            if usize::try_from(running)? >= count {
                return Ok(());
            }
            ensure!(begin.elapsed() < patience, "{running} of {count} operations were asked about in time");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The first poll of every operation that had one.
    pub fn first_polls(&self) -> Result<Vec<Poll>> {
        let store = self.reading()?;
        let mut statement = store.prepare(
            "SELECT json_extract(dispatched.payload, '$.dispatched.link.kind'), \
             json_extract(dispatched.payload, '$.dispatched.next_poll_at'), polled.at \
             FROM facts AS dispatched JOIN facts AS polled ON polled.stream = dispatched.stream AND polled.version = 2 \
             WHERE dispatched.kind = 'external_production_dispatched/1' AND dispatched.version = 1",
        )?;
        let polls = statement.query_map([], |row| {
            let at = |column| Ok::<_, rusqlite::Error>(Timestamp::from_micros(row.get(column)?));
            Ok(Poll { kind: row.get(0)?, due_at: at(1)?, at: at(2)? })
        })?;
        Ok(polls.collect::<rusqlite::Result<_>>()?)
    }

    fn reading(&self) -> Result<Connection> {
        let path: &Path = &self.data_dir.join("longhaul.sqlite");
        Ok(Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
    }
}

fn connector(kind: &str, open: &Open) -> String {
    let address = open.service;
    let path = if kind == HUNG {
        "hung"
    } else if kind.starts_with(PACED) {
        "paced"
    } else {
        "work"
    };
    format!(
        "name: {kind}
execution_mode_support: async-only
allow: ['{address}']
submit:
  url: http://{address}/work
  idempotent: true
status:
  url: http://{address}/{path}/${{uri(operation.remote_id)}}
read:
  id: answer.body.id
  status: answer.body.state
  progress: answer.body.progress
  progress_text: answer.body.message
states:
  queued: pending
  running: running
  done: completed
"
    )
}
