//! How many facts one durable transaction of a daemon holds. A database's rows know their transaction; on a file the log is looked at
//! again and again while it grows, and what it shows is set against how far the ledger went meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::{Connection, OpenFlags};

use crate::books::{Books, number};
use crate::log::Log;
use crate::raw::rows::Value;
use crate::site::Site;

const LOOK_EVERY: Duration = Duration::from_millis(40);
/// Nothing is known of a log that is always begun anew: every fact has a transaction then.
const AT_LEAST: f64 = 1.0;

/// Looks at the transactions of a daemon.
pub struct Transactions {
    from: i64,
    watch: Option<(Arc<AtomicBool>, JoinHandle<Result<Seen>>)>,
}

/// What was seen together.
#[derive(Default)]
struct Seen {
    facts: i64,
    transactions: usize,
}

impl Transactions {
    /// From now on.
    pub fn of(site: &Site<'_>, books: &Books) -> Result<Self> {
        let from = books.position()?;
        let watch = site.is_file().then(|| {
            let (over, path) = (Arc::new(AtomicBool::new(false)), site.file());
            let told = over.clone();
            (over, std::thread::spawn(move || watch(path, &told)))
        });
        Ok(Self { from, watch })
    }

    /// Facts in one, on average.
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn facts_in_one(self, books: &Books) -> Result<f64> {
        let Some((over, watch)) = self.watch else {
            let rows = books.rows(
                "SELECT count(*), count(DISTINCT xmin::text) FROM facts WHERE position > $1",
                &[Value::Integer(self.from)],
            )?;
            let row = rows.first().context("a count has a row")?;
            return Ok((number(row, 0)? as f64 / number(row, 1)?.max(1) as f64).max(AT_LEAST));
        };
        over.store(true, Ordering::SeqCst);
        let seen = watch.join().ok().context("nobody looked at the log")??;
        Ok((seen.facts as f64 / seen.transactions.max(1) as f64).max(AT_LEAST))
    }
}

fn watch(path: PathBuf, over: &AtomicBool) -> Result<Seen> {
    let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let (books, log) = (Books::Sqlite(connection), Log::of(&path));
    let mut seen = Seen::default();
    let mut before = None;
    while !over.load(Ordering::SeqCst) {
        let now = (log.read().ok(), books.position()?);
        if let (Some((Some(earlier), position)), (Some(later), here)) = (&before, &now)
            && let Some(commits) = later.since(earlier)
        {
            seen.facts += here - position;
            seen.transactions += commits.len();
        }
        before = Some(now);
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(seen)
}
