//! A file that was damaged at random: bits flipped, sectors lost, pages in the wrong place or from an earlier day, the end cut off, rows
//! changed and deleted. Either that is found, or everything that the store shows is as it was.
//!
//! `LONGHAUL_DAMAGES` says how many files are damaged. What stands beside the ledger without a digest is left out: answers under
//! keys, tokens, peers, asks, the state of plugins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use domain::job::{JobFact, JobStateName};
use domain::{BodyName, Fact, Record, RecordKind, Timestamp};
use rusqlite::Connection;
use store::{Head, JobFilter, JobQuery, Page, Removal, Store, StoreError, StoredFact, Taken, body_ref};
use store_sql::{SqliteOptions, SqliteStore, open_for_reading, verify};

use super::file::File;
use crate::given::*;

const DAMAGES: u64 = 1_000;
const SECTOR: usize = 512;
const PAGE: usize = 4_096;
const MORE_JOBS: usize = 40;
/// The tables whose rows the facts answer for.
const TABLES: [&str; 5] = ["facts", "agenda", "jobs", "operations", "bodies"];
/// What no fact tells, so that nobody could find another value of it: the order across streams, leases, how long what is over is kept.
const UNTOLD: [&str; 8] =
    ["position", "owner", "lease_expires_at", "heartbeat_at", "claim_version", "held", "due_at", "limit_at"];

/// Numbers from a seed (`SplitMix64`).
pub struct Chance(pub u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// What the store shows to whoever asks it, whichever index leads there. Leases are left out: no fact tells of them.
#[derive(Debug, PartialEq)]
struct Shown {
    facts: Vec<StoredFact>,
    records: Vec<Option<(Arc<Record>, Head)>>,
    lists: Vec<Page>,
    bodies: Vec<Option<Vec<u8>>>,
    due_first: [Option<Timestamp>; 2],
    ready: Vec<String>,
    due: Vec<String>,
}

async fn shown(store: &SqliteStore) -> Result<Shown, StoreError> {
    let facts = store.facts_after(0, usize::MAX).await?;
    let streams: BTreeSet<_> = facts.iter().map(|fact| fact.stream.clone()).collect();
    let mut records = Vec::new();
    for id in &streams {
        records.push(store.load(id).await?.map(|loaded| (loaded.record, loaded.head)));
    }
    let mut lists = Vec::new();
    let by_state =
        JobStateName::ALL.iter().map(|state| JobFilter { state: Some(*state), ..JobFilter::default() });
    let by_others = [
        JobFilter::default(),
        JobFilter { owner_peer_id: Some("peer-ada".to_owned()), ..JobFilter::default() },
        JobFilter { circle: Some("press".to_owned()), ..JobFilter::default() },
    ];
    for filter in by_state.chain(by_others) {
        lists.push(store.jobs(JobQuery { filter, limit: 1_000, ..JobQuery::default() }).await?);
    }
    let mut bodies = Vec::new();
    for name in ["queued", "running", "outside", "done", "lost"] {
        bodies.push(store.body(&job(name), body_ref(BodyName::Input, name.as_bytes())).await?);
    }
    bodies.push(store.body(&job("done"), body_ref(BodyName::Result, b"{\"pages\":12}")).await?);
    let due_first =
        [store.earliest_due(RecordKind::Job).await?, store.earliest_due(RecordKind::Operation).await?];
    let names = |taken: Vec<Taken>| taken.iter().map(|taken| taken.id.to_string()).collect();
    let ready = names(store.take_ready(LANE.into(), take("node-b", at(999), 1_000)).await?);
    let due = names(store.take_due(RecordKind::Job, take("node-b", at(100_000_000), 1_000)).await?);
    Ok(Shown { facts, records, lists, bodies, due_first, ready, due })
}

/// A store with some more in it, and the file as it was somewhat earlier.
struct Whole {
    bytes: Vec<u8>,
    earlier: Vec<u8>,
    shown: Shown,
}

async fn whole() -> Whole {
    let file = File::lived_in().await;
    let fill = async |from: usize| {
        let store = file.open();
        for number in from..from + MORE_JOBS {
            let id = job(&format!("more-{number:03}"));
            write(&store, &id, vec![created()], at(100)).await;
            if number.is_multiple_of(3) {
                taken(&store, &id, "node-a", at(101)).await;
                write(&store, &id, vec![dispatched(1), noted("begun")], at(102)).await;
                write(&store, &id, vec![completed()], at(103)).await;
            }
            // What is retired leaves free pages and free room on pages.
            if number.is_multiple_of(9) {
                let mut retiring = next_change(&store, &id, vec![Fact::Job(JobFact::Retired)], at(104)).await;
                retiring.removal = Removal::Record;
                store.commit(commit(vec![retiring], at(104))).await.unwrap();
            }
        }
    };
    fill(0).await;
    let earlier = file.bytes();
    fill(MORE_JOBS).await;
    let bytes = file.bytes();
    assert_eq!(file.verified().differences, []);
    let shown = shown(&file.open()).await.unwrap();
    Whole { bytes, earlier, shown }
}

/// The kinds of damage.
const KINDS: [&str; 9] = [
    "bit flipped",
    "byte overwritten",
    "sector zeroed",
    "sector overwritten",
    "page elsewhere",
    "page of an earlier day",
    "end cut off",
    "row deleted",
    "value changed",
];

impl Whole {
    /// The file with one damage of this kind; also says where.
    fn damaged(&self, kind: &str, chance: &mut Chance) -> (File, String) {
        let mut bytes = self.bytes.clone();
        let pages = bytes.len() / PAGE;
        // Much of a file is empty, and damage there proves little.
        let written: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
        let byte = if chance.below(8) == 0 { chance.below(bytes.len()) } else { chance.of(&written) };
        let sector = byte / SECTOR * SECTOR;
        let mut place = format!("byte {byte}");
        match kind {
            "bit flipped" => bytes[byte] ^= 1 << chance.below(8),
            "byte overwritten" => {
                let more = u8::try_from(1 + chance.below(255)).unwrap();
                bytes[byte] = bytes[byte].wrapping_add(more);
            }
            "sector zeroed" => bytes[sector..sector + SECTOR].fill(0),
            "sector overwritten" => {
                for byte in &mut bytes[sector..sector + SECTOR] {
                    *byte = chance.byte();
                }
            }
            "page elsewhere" => {
                let (from, to) = (byte / PAGE, chance.below(pages));
                bytes.copy_within(from * PAGE..(from + 1) * PAGE, to * PAGE);
                place = format!("page {from} on {to}");
            }
            "page of an earlier day" => {
                let page = chance.below(self.earlier.len().min(bytes.len()) / PAGE);
                bytes[page * PAGE..(page + 1) * PAGE]
                    .copy_from_slice(&self.earlier[page * PAGE..(page + 1) * PAGE]);
                place = format!("page {page}");
            }
            "end cut off" => bytes.truncate(byte),
            _ => {
                let file = File::holding(&bytes);
                place = behind_its_back(&file, kind, chance);
                return (file, place);
            }
        }
        (File::holding(&bytes), place)
    }
}

/// One row deleted or one value changed, past every rule.
fn behind_its_back(file: &File, kind: &str, chance: &mut Chance) -> String {
    let table = chance.of(&TABLES);
    let raw = file.raw();
    let keys =
        if table == "facts" || table == "jobs" || table == "operations" { "rowid" } else { "record_id" };
    let count: u32 = raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
    let row = chance.below(count as usize);
    let one = format!("WHERE {keys} = (SELECT {keys} FROM {table} LIMIT 1 OFFSET {row})");
    let statement = if kind == "row deleted" {
        format!("DELETE FROM {table} {one}")
    } else {
        let mut columns = columns(&raw, table);
        columns.retain(|(name, _)| !UNTOLD.contains(&name.as_str()));
        let (column, is) = &columns[chance.below(columns.len())];
        let value = match is.as_str() {
            "INTEGER" => format!("coalesce({column}, 0) + {}", 1 + chance.below(1_000)),
            "TEXT" => format!("coalesce({column}, '') || '{}'", chance.below(10)),
            _ => format!("CAST(x'{:02x}' || substr({column}, 2) AS BLOB)", chance.below(256)),
        };
        format!("UPDATE OR REPLACE {table} SET {column} = {value} {one}")
    };
    raw.execute_batch("DROP TRIGGER facts_are_never_changed; DROP TRIGGER facts_go_only_when_retired")
        .unwrap();
    raw.execute(&statement, []).unwrap();
    statement
}

fn columns(raw: &Connection, table: &str) -> Vec<(String, String)> {
    let mut statement = raw.prepare(&format!("SELECT name, type FROM pragma_table_info('{table}')")).unwrap();
    let columns = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    columns.collect::<Result<_, _>>().unwrap()
}

/// Whether `longhaul verify` says that something is wrong.
fn is_found(path: &Path) -> bool {
    let Ok(reading) = open_for_reading(path) else { return true };
    verify(&reading).map_or(true, |verified| verified.difference_count > 0)
}

#[tokio::test]
async fn any_damage_to_the_file_is_found_or_changes_nothing_that_is_shown() {
    let damages = std::env::var("LONGHAUL_DAMAGES").map_or(DAMAGES, |damages| damages.parse().unwrap());
    let whole = whole().await;
    let (mut found, mut harmless) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
    let mut silent = Vec::new();
    for seed in 0..damages {
        let mut chance = Chance(seed);
        let kind = chance.of(&KINDS);
        let (file, place) = whole.damaged(kind, &mut chance);
        if is_found(&file.path()) {
            *found.entry(kind).or_default() += 1;
            continue;
        }
        *harmless.entry(kind).or_default() += 1;
        // A store that refuses to open or to answer serves nothing false.
        let Ok(store) = SqliteStore::open(&SqliteOptions::at(file.path())) else { continue };
        match shown(&store).await {
            Ok(shown) if shown == whole.shown => {}
            Ok(_) => silent.push(format!("seed {seed}: {kind}, {place}: another answer")),
            Err(error) => silent.push(format!("seed {seed}: {kind}, {place}: {error}")),
        }
    }
    println!("found {found:?}, harmless {harmless:?}");
    assert!(silent.is_empty(), "{} were not found: {silent:#?}", silent.len());
    let in_all: u64 = found.values().sum();
    assert!(in_all * 2 > damages, "only {in_all} of {damages} were found: too much of it hit nothing");
    assert_eq!(found.len(), KINDS.len(), "{found:?}");
}
