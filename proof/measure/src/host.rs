//! A daemon of our binary on a site of its own, and units of work that it is given over HTTP.

use std::ffi::OsStr;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};

use crate::books::{Books, number, text};
use crate::connection::Connection;
use crate::load;
use crate::process::{DaemonProcess, time_of_tree};
use crate::raw::rows::Value;
use crate::raw::{self, Pattern};
use crate::site::Site;
use crate::transactions::Transactions;
use crate::work::{Raw, Spread, Work, count, ms_each, per_second};

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Whoever waits for one alone looks more often.
const LOOK_SOON: Duration = Duration::from_millis(2);
/// What is under way comes to its end first.
const PAUSE: Duration = Duration::from_millis(5);
const GIVEN_UP_AFTER: Duration = Duration::from_mins(2);
/// The first try; from how long it takes the next ones follow.
const FIRST_TRY: usize = 16;
const MOST_AT_ONCE: usize = 200_000;
/// The most that one try is larger than the one before.
const TIMES: f64 = 12.0;
/// Alone, no more than this: the percentiles have settled.
const MOST_ALONE: usize = 500;

/// A daemon at work.
pub struct Host<'a> {
    /// Ended before its site goes.
    pub daemon: DaemonProcess,
    /// What it has written.
    pub books: Books,
    /// Where it is.
    pub site: Site<'a>,
}

/// One unit of work.
pub struct Unit {
    /// In words.
    pub what: String,
    /// Where it is asked for.
    pub path: &'static str,
    /// What is sent.
    pub body: String,
    /// Who ask at the same time.
    pub connections: usize,
    /// How one sees that it is over.
    pub over: Over,
    /// How long one takes even if nothing is to be done.
    pub at_least: Duration,
}

/// How one sees that a unit is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// A job has completed.
    Job,
    /// A run has completed.
    Run,
}

/// Units that were asked for and done.
pub struct Done {
    /// How many.
    pub count: usize,
    /// From the first request to the last end.
    pub time: Duration,
    /// On a processor.
    pub cpu: Duration,
    /// In the store.
    pub bytes: i64,
    /// In a durable transaction.
    pub facts_per_transaction: f64,
}

impl Over {
    /// The fact that says so.
    fn fact(self) -> &'static str {
        match self {
            Self::Job => "job.completed/",
            Self::Run => "run.ended/",
        }
    }
}

impl<'a> Host<'a> {
    /// Started on this site with more to say to it.
    pub fn start(site: Site<'a>, arguments: &[&OsStr]) -> Result<Self> {
        let own = site.arguments();
        let all: Vec<&OsStr> = own.iter().map(AsRef::as_ref).chain(arguments.iter().copied()).collect();
        let daemon = DaemonProcess::start_with(&site.ground.binary, &site.dir, &all)?;
        let books = site.books()?;
        Ok(Self { daemon, books, site })
    }

    /// Does one unit, and takes what it wrote as the pattern for the raw database.
    pub fn pattern(&self, unit: &Unit) -> Result<Pattern> {
        // The first one of a kind may leave more than the others: what a plugin remembers, for one.
        self.one(unit)?;
        std::thread::sleep(PAUSE);
        let before = self.books.position()?;
        self.one(unit)?;
        std::thread::sleep(PAUSE);
        Pattern::since(&self.books, before)
    }

    /// Does as many units as take about this long.
    pub fn for_about(&self, unit: &Unit, time: Duration) -> Result<Done> {
        let mut units = FIRST_TRY;
        loop {
            let done = self.all(unit, units)?;
            let busy = done.time.saturating_sub(unit.at_least).max(LOOK_EVERY);
            let share = time.saturating_sub(unit.at_least).as_secs_f64() / busy.as_secs_f64();
            if share < 2.0 || units >= MOST_AT_ONCE {
                return Ok(done);
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it has a limit")]
            let next = (count(units) * share.min(TIMES)) as usize;
            units = next.min(MOST_AT_ONCE);
        }
    }

    /// Does so many units, and waits until all are over.
    pub fn all(&self, unit: &Unit, units: usize) -> Result<Done> {
        self.site.ground.go_on()?;
        let (before, bytes) = (self.over(unit)?, self.books.bytes()?);
        let (cpu, transactions) =
            (time_of_tree(self.daemon.id())?, Transactions::of(&self.site, &self.books)?);
        let begin = Instant::now();
        load::runtime()?.block_on(load::send(
            &self.daemon.address,
            unit.connections.min(units),
            units,
            unit.path,
            &unit.body,
        ))?;
        while self.over(unit)? < before + units {
            self.site.ground.go_on()?;
            ensure!(begin.elapsed() < GIVEN_UP_AFTER, "not all of {units} are over: {}", unit.what);
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(Done {
            count: units,
            time: begin.elapsed(),
            cpu: time_of_tree(self.daemon.id())?.saturating_sub(cpu),
            bytes: self.books.bytes()? - bytes,
            facts_per_transaction: transactions.facts_in_one(&self.books)?,
        })
    }

    /// One after the other for about this long, each alone: how long from before the request until its end was decided on.
    pub fn alone(&self, unit: &Unit, time: Duration) -> Result<Option<Spread>> {
        let begin = Instant::now();
        let mut each = Vec::new();
        while (begin.elapsed() < time && each.len() < MOST_ALONE) || each.is_empty() {
            each.push(self.one(unit)?);
            std::thread::sleep(PAUSE);
        }
        Ok(Spread::of(each))
    }

    /// All that is to be told of a kind of work, and the raw database beside it.
    pub fn work(&self, unit: &Unit, time: Duration) -> Result<Work> {
        let pattern = self.pattern(unit)?;
        let latency = self.alone(unit, time / 4)?;
        let done = self.for_about(unit, time / 2)?;
        let raw = done.raw(&self.site.ground.site()?, &pattern)?;
        Ok(done.work(unit.what.clone(), latency, Some(raw)))
    }

    /// Seconds from before the request until the end was decided on.
    pub fn one(&self, unit: &Unit) -> Result<f64> {
        let from = self.books.position()?;
        let begin = Instant::now();
        let sent = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        load::runtime()?.block_on(async {
            Connection::to(&self.daemon.address).await?.post(unit.path, &unit.body).await.map(|_| ())
        })?;
        loop {
            self.site.ground.go_on()?;
            std::thread::sleep(LOOK_SOON);
            let facts = self.books.rows(
                "SELECT kind, at FROM facts WHERE position > $1 ORDER BY position",
                &[Value::Integer(from)],
            )?;
            for fact in &facts {
                let kind = text(fact, 0)?;
                ensure!(!kind.starts_with("job.failed/"), "it failed: {}", unit.what);
                if kind.starts_with(unit.over.fact()) {
                    let ended = Duration::from_micros(u64::try_from(number(fact, 1)?)?);
                    return Ok(ended.saturating_sub(sent).as_secs_f64());
                }
            }
            ensure!(begin.elapsed() < GIVEN_UP_AFTER, "not over in time: {}", unit.what);
        }
    }

    /// How many units are over.
    fn over(&self, unit: &Unit) -> Result<usize> {
        match unit.over {
            Over::Job => load::runtime()?.block_on(async {
                let mut connection = Connection::to(&self.daemon.address).await?;
                let failed = load::in_state(&mut connection, "failed").await?;
                ensure!(failed == 0, "{failed} have failed: {}", unit.what);
                load::completed(&mut connection).await
            }),
            Over::Run => {
                let runs = "SELECT count(*) FROM records WHERE kind = 'run' AND status = 'completed'";
                usize::try_from(self.books.number(runs)?).context("a count is not negative")
            }
        }
    }
}

impl Done {
    /// By the second.
    pub fn per_second(&self) -> f64 {
        per_second(self.count, self.time)
    }

    /// The raw database doing the same rows in such transactions.
    pub fn raw(&self, site: &Site<'_>, pattern: &Pattern) -> Result<Raw> {
        raw::write(site, pattern, self.count, self.facts_per_transaction)
    }

    /// For the table, with how long one takes alone.
    pub fn work(&self, what: String, alone: Option<Spread>, raw: Option<Raw>) -> Work {
        #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
        let bytes = self.bytes as f64 / count(self.count);
        Work {
            what,
            count: self.count,
            per_second: self.per_second(),
            latency_ms: alone.map(|spread| spread.among(1)),
            cpu_ms_each: Some(ms_each(self.cpu, self.count)),
            bytes_each: Some(bytes),
            raw,
        }
    }
}
