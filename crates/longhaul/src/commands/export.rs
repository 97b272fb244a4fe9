//! `longhaul export facts`: the ledger as JSON lines, as it is stored.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::value::RawValue;
use store_sql::{FactLine, facts_after, open_for_reading};

#[derive(Serialize)]
struct Line<'a> {
    position: u64,
    stream: &'a str,
    version: u64,
    fact_id: &'a str,
    kind: &'a str,
    at: String,
    actor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    payload: &'a RawValue,
    checksum: &'a str,
}

pub fn facts(path: &Path, after: u64) -> Result<ExitCode> {
    let connection = open_for_reading(path)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut position = after;
    loop {
        let page = facts_after(&connection, position)?;
        let Some(last) = page.last() else { break };
        position = last.position;
        for fact in &page {
            if let Err(error) = write_line(&mut out, fact) {
                return stopped_reading(error);
            }
        }
    }
    match out.flush() {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => stopped_reading(error.into()),
    }
}

fn write_line(out: &mut impl Write, fact: &FactLine) -> Result<()> {
    let line = Line {
        position: fact.position,
        stream: &fact.stream,
        version: fact.version,
        fact_id: &fact.fact_id,
        kind: &fact.kind,
        at: jiff::Timestamp::from_microsecond(fact.at.micros())?.to_string(),
        actor: &fact.actor,
        causation_id: fact.causation_id.as_deref(),
        correlation_id: fact.correlation_id.as_deref(),
        payload: serde_json::from_str(&fact.payload)
            .with_context(|| format!("the payload at position {} is not JSON", fact.position))?,
        checksum: &fact.checksum,
    };
    serde_json::to_writer(&mut *out, &line).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// `longhaul export facts | head` is no failure.
fn stopped_reading(error: anyhow::Error) -> Result<ExitCode> {
    match error.downcast_ref::<std::io::Error>() {
        Some(broken) if broken.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Some(_) | None => Err(error),
    }
}
