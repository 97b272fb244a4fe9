//! The daemon over HTTP: creates beside creates through `execute`; no-op jobs to their end beside the raw database; and how soon one job
//! alone is done, in commits of the same disk.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use anyhow::Result;
use store_sql::Durability;

use crate::bench::{Measured, ROUNDS};
use crate::cycle;
use crate::host::{Done, Host, Over, Unit};
use crate::line::{Bound, Line, middle};
use crate::load;
use crate::process::time_of_tree;
use crate::raw::Pattern;
use crate::site::Ground;
use crate::work::{Raw, Spread, Work, count, ms_each, per_second};

/// Callers and connections.
const CALLERS: usize = 64;
/// Of the rate of creates through `execute`.
const CREATES_AT_LEAST: f64 = 0.25;
/// Of the rate of the raw database: on a file, and on a server, which costs the raw client a round trip as well.
const JOBS_AT_LEAST: [f64; 2] = [0.2, 0.5];
/// From the request to the result of one job alone, p99, in commits.
const COMMITS: f64 = 10.0;
/// Jobs of the first try: how many there are in a piece of time is not known yet.
const FIRST_TRY: usize = 500;
/// What is under way comes to its end first.
const PAUSE: Duration = Duration::from_millis(5);

/// Creates, whole jobs, and one job alone.
pub fn measure(ground: &Ground, time: Duration) -> Result<Measured> {
    // Two creates, a whole job and its raw rows in each round; and one alone.
    let piece = time / (ROUNDS * 4 + 3);
    let mut measured = creates(ground, piece)?;
    let whole = whole(ground, piece)?;
    measured.works.extend(whole.works);
    measured.lines.extend(whole.lines);
    Ok(measured)
}

/// The no-op job of the core, over HTTP.
pub fn noop() -> Unit {
    Unit {
        what: format!("no-op jobs over HTTP to their end, {CALLERS} connections"),
        path: "/jobs",
        body: load::NOOP.to_owned(),
        connections: CALLERS,
        over: Over::Job,
        at_least: Duration::ZERO,
    }
}

fn creates(ground: &Ground, piece: Duration) -> Result<Measured> {
    let mut rounds = Vec::new();
    let mut jobs = FIRST_TRY;
    for round in 0..=ROUNDS {
        ground.say(&format!("http: creates, round {round} of {ROUNDS}"));
        let in_store = in_store(ground, jobs)?;
        let host = Host::start(ground.site()?, &[OsStr::new("--no-dispatch")])?;
        let (cpu, bytes) = (time_of_tree(host.daemon.id())?, host.books.bytes()?);
        let begin = Instant::now();
        let each = load::runtime()?.block_on(load::send(
            &host.daemon.address,
            CALLERS,
            jobs,
            "/jobs",
            load::NOOP,
        ))?;
        let took = begin.elapsed();
        #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
        let bytes = (host.books.bytes()? - bytes) as f64 / count(jobs);
        let work = Work {
            what: format!("creates over HTTP, {CALLERS} connections"),
            count: jobs,
            per_second: per_second(jobs, took),
            latency_ms: Spread::of(each).map(|spread| spread.among(CALLERS)),
            cpu_ms_each: Some(ms_each(time_of_tree(host.daemon.id())?.saturating_sub(cpu), jobs)),
            bytes_each: Some(bytes),
            raw: None,
        };
        // The first round only says how many jobs fill the time.
        if round == 0 {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a few seconds")]
            let fitting = (work.per_second * piece.as_secs_f64()) as usize;
            jobs = fitting.max(FIRST_TRY);
        } else {
            rounds.push((work, in_store));
        }
    }
    let (work, in_store) = middle(rounds, |(work, in_store)| work.per_second / in_store);
    let line = Line {
        what: format!(
            "creates over HTTP at {CALLERS} connections, and through `execute` at {CALLERS} callers"
        ),
        measured: format!("{:.0}/s", work.per_second),
        against: format!("{in_store:.0}/s"),
        figure: work.per_second / in_store,
        bound: Bound::AtLeast(CREATES_AT_LEAST),
    };
    Ok(Measured { works: vec![work], lines: vec![line], ..Measured::default() })
}

fn in_store(ground: &Ground, jobs: usize) -> Result<f64> {
    let site = ground.site()?;
    let opened = site.open(Durability::Full)?;
    let engine = cycle::engine(opened.store());
    let begin = Instant::now();
    ground.runtime.block_on(cycle::create_many(&engine, CALLERS, jobs, cycle::EXECUTOR, cycle::INPUT))?;
    let took = begin.elapsed();
    drop(engine);
    opened.close(ground);
    Ok(per_second(jobs, took))
}

fn whole(ground: &Ground, piece: Duration) -> Result<Measured> {
    let unit = noop();
    let host = Host::start(ground.site()?, &[])?;
    let pattern = host.pattern(&unit)?;
    let jobs = host.for_about(&unit, piece)?.count;
    ground.say("http: jobs alone");
    let [alone, commit] = in_turns(ground, &host, &unit, piece * 2)?;
    drop(host);
    let mut rounds: Vec<(Done, Raw)> = Vec::new();
    for round in 1..=ROUNDS {
        ground.say(&format!("http: jobs to their end, round {round} of {ROUNDS}"));
        rounds.push(one(ground, &unit, &pattern, jobs)?);
    }
    let ratio = |(done, raw): &(Done, Raw)| done.per_second() / raw.per_second;
    let (done, raw) = middle(rounds, ratio);
    let mut lines = vec![Line {
        what: format!(
            "no-op jobs over HTTP to their end at {CALLERS} connections, and raw SQL in transactions of {}",
            raw.facts()
        ),
        measured: format!("{:.0}/s", done.per_second()),
        against: format!("{:.0}/s", raw.per_second),
        figure: done.per_second() / raw.per_second,
        bound: Bound::AtLeast(JOBS_AT_LEAST[usize::from(ground.server.is_some())]),
    }];
    if let (Some(alone), Some(commit)) = (alone, commit) {
        lines.push(Line {
            what: format!(
                "from the request to the result of a no-op alone, p99 (p50 {:.2} ms), and one commit through `execute`, p50 (p99 {:.2} ms)",
                alone.p50, commit.p99
            ),
            measured: format!("{:.2} ms", alone.p99),
            against: format!("{:.2} ms", commit.p50),
            figure: alone.p99 / commit.p50,
            // What a round trip to a server adds is the network's.
            bound: if ground.server.is_some() { Bound::Told } else { Bound::Below(COMMITS) },
        });
    }
    let work = done.work(unit.what, alone, Some(raw));
    Ok(Measured { works: vec![work], lines, ..Measured::default() })
}

fn one(ground: &Ground, unit: &Unit, pattern: &Pattern, jobs: usize) -> Result<(Done, Raw)> {
    let host = Host::start(ground.site()?, &[])?;
    let done = host.all(unit, jobs)?;
    drop(host);
    let raw = done.raw(&ground.site()?, pattern)?;
    Ok((done, raw))
}

/// Jobs alone and single commits through `execute` take turns, for about this long: a disk has moods. Both logs have their size.
fn in_turns(ground: &Ground, host: &Host<'_>, unit: &Unit, time: Duration) -> Result<[Option<Spread>; 2]> {
    let site = ground.site()?;
    let opened = site.open(Durability::Full)?;
    let engine = cycle::engine(opened.store());
    let many = cycle::create_many(&engine, CALLERS, FIRST_TRY, cycle::EXECUTOR, cycle::INPUT);
    ground.runtime.block_on(many)?;
    let (mut jobs, mut commits) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    while begin.elapsed() < time || jobs.is_empty() {
        ground.go_on()?;
        jobs.push(host.one(unit)?);
        std::thread::sleep(PAUSE);
        let begin = Instant::now();
        ground.runtime.block_on(cycle::create(&engine))?;
        commits.push(begin.elapsed().as_secs_f64());
        std::thread::sleep(PAUSE);
    }
    drop(engine);
    opened.close(ground);
    Ok([Spread::of(jobs), Spread::of(commits)])
}
