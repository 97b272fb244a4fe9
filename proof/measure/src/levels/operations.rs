//! Work that goes on at a service: accepted, asked about a second later, and done. How many come to their end, and how late they are asked
//! about.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value as Json;

use super::executors::Files;
use crate::bench::Measured;
use crate::books::{Books, number, text};
use crate::connection::Connection;
use crate::host::{Host, Over, Unit};
use crate::line::{Bound, Line};
use crate::load;
use crate::raw::rows::Value;
use crate::service::ServiceProcess;
use crate::site::Ground;
use crate::work::Spread;

/// Lateness of a poll, p99, in milliseconds.
const LATE_BELOW_MS: f64 = 500.0;
const CONNECTIONS: usize = 16;
/// Operations in a second while lateness is looked at.
const PACE: u32 = 50;
/// They are asked about so long after they were accepted.
const DUE_AFTER: Duration = Duration::from_secs(1);
/// By then the last ones were asked about.
const ASKED_ABOUT_AFTER: Duration = Duration::from_secs(2);

/// One kind of work, and one line.
pub fn measure(ground: &Ground, time: Duration) -> Result<Measured> {
    let service = ServiceProcess::start(&ground.binary)?;
    let files = Files::make(ground, &service)?;
    let host = Host::start(ground.site()?, &["--config".as_ref(), files.config().as_os_str()])?;
    let unit = Unit {
        what: "operations at a service: accepted, asked about once, done".to_owned(),
        path: "/jobs",
        body: r#"{"title":"render the cover","executor":"deferred","input":{"width":1280}}"#.to_owned(),
        connections: CONNECTIONS,
        over: Over::Job,
        at_least: DUE_AFTER,
    };
    ground.say("operations: how late they are asked about");
    let pattern = host.pattern(&unit)?;
    let late = lateness(&host, &unit, time / 4)?;
    ground.say("operations: as many as can be");
    let done = host.for_about(&unit, time / 2)?;
    let raw = done.raw(&ground.site()?, &pattern)?;
    let mut measured = Measured::default();
    if let Some(late) = late {
        measured.lines.push(Line {
            what: format!(
                "lateness of a poll in ms, p99 (p50 {:.1}, p95 {:.1}), {PACE} operations a second",
                late.p50, late.p95
            ),
            measured: format!("{:.1} ms", late.p99),
            against: String::new(),
            figure: late.p99,
            bound: Bound::Below(LATE_BELOW_MS),
        });
    }
    measured.works.push(done.work(unit.what, None, Some(raw)));
    Ok(measured)
}

/// Asks for work at an even pace, and reads in the ledger how late it was asked about.
fn lateness(host: &Host<'_>, unit: &Unit, time: Duration) -> Result<Option<Spread>> {
    let from = host.books.position()?;
    load::runtime()?.block_on(async {
        let mut connection = Connection::to(&host.daemon.address).await?;
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / PACE);
        let begin = Instant::now();
        while begin.elapsed() < time {
            ticks.tick().await;
            connection.post(unit.path, &unit.body).await?;
        }
        // The last ones are due a little later than they were asked for.
        tokio::time::sleep(ASKED_ABOUT_AFTER).await;
        anyhow::Ok(())
    })?;
    polls(&host.books, from)
}

/// From the time at which an operation was due to the time at which its answer was written down.
fn polls(books: &Books, from: i64) -> Result<Option<Spread>> {
    let facts = books.rows(
        "SELECT dispatched.payload, polled.at FROM facts AS dispatched \
         JOIN facts AS polled ON polled.stream = dispatched.stream AND polled.version = 2 \
         WHERE dispatched.kind = 'external_production_dispatched/1' AND dispatched.version = 1 \
         AND dispatched.position > $1",
        &[Value::Integer(from)],
    )?;
    let mut late = Vec::new();
    for fact in &facts {
        let payload: Json = serde_json::from_str(text(fact, 0)?)?;
        let due = payload.pointer("/dispatched/next_poll_at").and_then(Json::as_i64);
        let micros = number(fact, 1)? - due.context("an operation knows when it is due")?;
        late.push(Duration::from_micros(u64::try_from(micros).unwrap_or(0)).as_secs_f64());
    }
    Ok(Spread::of(late))
}
