//! Lies for the oracle, so that one can see that it sees: each is told or done once, in the middle of a drill, and must come out red.

use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::Connection;
use serde_json::json;

use crate::kind::Kind;
use crate::oracle::Entry;
use crate::plan::Sending;
use crate::stage::{ANSWER_WITHIN, Stage};
use crate::wire::{Request, send};

const BLIND_STARTS: usize = 20;

/// A lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// An acknowledged job goes without a trace, while the daemon is down.
    LoseJob,
    /// The result of a job that is over changes, while the daemon is down.
    ChangeResult,
    /// A view says something else than its facts, while the daemon is down.
    ChangeView,
    /// A job is there twice under one key.
    DoubleJob,
    /// The oracle is told another id than before.
    OtherAnswer,
    /// The service has accepted one start too many.
    SecondStart,
    /// A job that nobody does.
    NeverEnds,
    /// A bit of the log flips, while the daemon is down after a kill.
    DamageLog,
    /// A backup that lacks what was acknowledged last.
    StaleBackup,
}

impl Plant {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::LoseJob,
        Self::ChangeResult,
        Self::ChangeView,
        Self::DoubleJob,
        Self::OtherAnswer,
        Self::SecondStart,
        Self::NeverEnds,
        Self::DamageLog,
        Self::StaleBackup,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LoseJob => "lose-job",
            Self::ChangeResult => "change-result",
            Self::ChangeView => "change-view",
            Self::DoubleJob => "double-job",
            Self::OtherAnswer => "other-answer",
            Self::SecondStart => "second-start",
            Self::NeverEnds => "never-ends",
            Self::DamageLog => "damage-log",
            Self::StaleBackup => "stale-backup",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plant| plant.name() == name)
    }

    /// Whether the daemon has to be down for it.
    pub const fn is_done_to_the_store(self) -> bool {
        match self {
            Self::LoseJob | Self::ChangeResult | Self::ChangeView | Self::DamageLog => true,
            Self::DoubleJob | Self::OtherAnswer | Self::SecondStart | Self::NeverEnds | Self::StaleBackup => {
                false
            }
        }
    }

    /// Does it, if there is something to do it to yet.
    pub fn sow(self, stage: &Stage, file: &Path, service: &str) -> Result<bool> {
        let kind = if self == Self::SecondStart { Kind::Service } else { Kind::Noop };
        let Some((key, id, body)) = victim(stage, kind) else { return Ok(false) };
        match self {
            Self::LoseJob => {
                let statements = [
                    "jobs WHERE id",
                    "agenda WHERE record_id",
                    "bodies WHERE record_id",
                    "facts WHERE stream",
                ];
                let file = Connection::open(file)?;
                unlock(&file)?;
                for from in statements {
                    file.execute(&format!("DELETE FROM {from} = ?1"), [&id])?;
                }
            }
            Self::ChangeResult => {
                let file = Connection::open(file)?;
                let changed = "UPDATE bodies SET bytes = ?2 WHERE record_id = ?1 AND name = 'result'";
                return Ok(file.execute(changed, (&id, b"{\"drill\":\"another\"}"))? > 0);
            }
            Self::ChangeView => {
                let file = Connection::open(file)?;
                file.execute("UPDATE jobs SET updated_at = updated_at + 1 WHERE id = ?1", [&id])?;
            }
            Self::DoubleJob => {
                let other = format!("{key}-again");
                let request = Request {
                    method: "POST",
                    path: "/jobs",
                    key: Some(&other),
                    body: Some(&body),
                    within: ANSWER_WITHIN,
                };
                let answer = stage.ask(&request, Sending::Whole, ANSWER_WITHIN, || ());
                return Ok(answer.is_some_and(|answer| answer.is_success()));
            }
            Self::OtherAnswer => stage.oracle().accepted(&key, "work-of-nobody", "another"),
            Self::SecondStart => {
                let body = json!({ "seconds": 0, "result": { "drill": key } }).to_string();
                // More than the job can have been about to be given.
                for number in 0..BLIND_STARTS {
                    let key = format!("op-blind-{number}");
                    let request = Request {
                        method: "POST",
                        path: "/work",
                        key: Some(&key),
                        body: Some(&body),
                        within: ANSWER_WITHIN,
                    };
                    send(service, "", &request, Sending::Whole);
                }
            }
            Self::NeverEnds => {
                let key = "drill-nobody";
                let body = json!({ "title": "nobody does it", "source_kind": "drill", "source_id": key, "lane": "nobody" });
                stage.oracle().asks(key, Kind::Pulled, &body.to_string());
                crate::client::create(stage, key, Sending::Whole);
            }
            Self::DamageLog => return flip_bit_of_log(file),
            // Told to whoever takes backups.
            Self::StaleBackup => {}
        }
        Ok(true)
    }
}

/// Flips one bit of the log's second frame, or flips it back; false if the log is not that long.
pub fn flip_bit_of_log(file: &Path) -> Result<bool> {
    const PLACE: u64 = 32 + (24 + 4_096) + 24 + 100;
    let log = std::fs::File::options().read(true).write(true).open(file.with_extension("sqlite-wal"))?;
    let mut byte = [0];
    if log.metadata()?.len() <= PLACE + 4_096 {
        return Ok(false);
    }
    log.read_exact_at(&mut byte, PLACE)?;
    log.write_all_at(&[byte[0] ^ 1], PLACE)?;
    Ok(true)
}

/// A job of this kind that was seen completed.
fn victim(stage: &Stage, kind: Kind) -> Option<(String, String, String)> {
    let oracle = stage.oracle();
    let completed = |entry: &Entry| entry.end.as_ref().is_some_and(|end| end.state == "completed");
    let mut candidates = oracle.entries().filter(|(_, entry)| entry.kind == kind && completed(entry));
    candidates.find_map(|(key, entry)| Some((key.to_owned(), entry.id()?.to_owned(), entry.body.clone())))
}

/// Facts are kept from being deleted by triggers.
fn unlock(file: &Connection) -> Result<()> {
    let mut names = file.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'")?;
    let names = names.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    for name in names {
        file.execute_batch(&format!("DROP TRIGGER {name}")).with_context(|| name.clone())?;
    }
    Ok(())
}
