//! `longhaul export`: the ledger and the claims as JSON lines, as they are stored.

use std::io::{BufWriter, ErrorKind, Write};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::Result;
use domain::{RecordKind, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;
use store::StoreError;
use store_sql::{ClaimLine, FactLine, PostgresLedger, claims_after, facts_after, open_for_reading};

use crate::database::{Location, Place};

#[derive(Serialize)]
struct Line<'a> {
    position: u64,
    stream: &'a str,
    version: u64,
    fact_id: String,
    kind: &'a str,
    at: String,
    actor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    payload: &'a RawValue,
    checksum: String,
}

/// Azolla's claim record; `docs/schemas/claim-record.schema.json` is its schema.
#[derive(Serialize)]
struct ClaimRecord<'a> {
    resource_type: &'a str,
    resource_id: &'a str,
    owner_id: &'a str,
    lease_expires_at: String,
    heartbeat_at: String,
    claim_version: u64,
}

/// A ledger that is read page by page.
struct Ledger {
    facts_after: FactPages,
    claims_after: ClaimPages,
}

type FactPages = Box<dyn Fn(u64) -> Result<Vec<FactLine>, StoreError>>;
type ClaimPages = Box<dyn Fn(&str) -> Result<Vec<ClaimLine>, StoreError>>;

impl Ledger {
    fn open(location: &Location) -> Result<Self> {
        Ok(match location.place_of_store()? {
            Place::File(path) => {
                let connection = Rc::new(open_for_reading(&path)?);
                let same = connection.clone();
                Self {
                    facts_after: Box::new(move |position| facts_after(&connection, position)),
                    claims_after: Box::new(move |record_id| claims_after(&same, record_id)),
                }
            }
            Place::Server(address) => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let ledger = runtime.block_on(PostgresLedger::open(&address))?;
                let server = Rc::new((runtime, ledger));
                let same = server.clone();
                Self {
                    facts_after: Box::new(move |position| server.0.block_on(server.1.facts_after(position))),
                    claims_after: Box::new(move |record_id| same.0.block_on(same.1.claims_after(record_id))),
                }
            }
        })
    }
}

/// `longhaul export claims`: who holds what, or held it last.
pub fn claims(location: &Location) -> Result<ExitCode> {
    let ledger = Ledger::open(location)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut after = String::new();
    loop {
        let page = (ledger.claims_after)(&after)?;
        let Some(last) = page.last() else { break };
        last.id.as_str().clone_into(&mut after);
        for line in &page {
            if let Err(error) = write_claim(&mut out, line) {
                return stopped_reading(error);
            }
        }
    }
    match out.flush() {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => stopped_reading(error.into()),
    }
}

fn write_claim(out: &mut impl Write, line: &ClaimLine) -> Result<()> {
    let resource_type = match line.id.kind() {
        RecordKind::Job => "WORKORDER",
        RecordKind::Event => "EVENT",
        // The claim record of the contract knows no other kind; these claims are the daemon's own business.
        RecordKind::Operation | RecordKind::Run => return Ok(()),
    };
    let record = ClaimRecord {
        resource_type,
        resource_id: line.id.as_str(),
        owner_id: line.claim.owner.as_str(),
        lease_expires_at: rfc3339(line.claim.lease_expires_at)?,
        heartbeat_at: rfc3339(line.claim.heartbeat_at)?,
        claim_version: line.claim.claim_version,
    };
    serde_json::to_writer(&mut *out, &record).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

pub(super) fn rfc3339(at: Timestamp) -> Result<String> {
    Ok(jiff::Timestamp::from_microsecond(at.micros())?.to_string())
}

/// `longhaul export facts`: the ledger in the order of commits.
pub fn facts(location: &Location, after: u64) -> Result<ExitCode> {
    let ledger = Ledger::open(location)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut position = after;
    loop {
        let page = (ledger.facts_after)(position)?;
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
        fact_id: fact.id.to_string(),
        kind: &fact.kind,
        at: rfc3339(fact.at)?,
        actor: &fact.actor,
        causation_id: fact.causation_id.as_deref(),
        correlation_id: fact.correlation_id.as_deref(),
        payload: serde_json::from_str(&fact.payload).map_err(|error| {
            StoreError::Broken(format!("the payload at position {} is not JSON: {error}", fact.position))
        })?,
        checksum: fact.checksum.to_string(),
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

#[cfg(test)]
mod tests {
    use domain::{Claim, OwnerId, RecordId};

    use super::*;

    #[test]
    fn only_work_orders_and_events_are_exported_as_claims() {
        for (id, resource_type) in
            [("work-1", Some("WORKORDER")), ("event-1", Some("EVENT")), ("op-1", None), ("run-1", None)]
        {
            let at = Timestamp::from_micros(0);
            let claim = Claim {
                owner: OwnerId::new("worker"),
                lease_expires_at: at,
                heartbeat_at: at,
                claim_version: 1,
            };
            let mut out = Vec::new();
            write_claim(&mut out, &ClaimLine { id: RecordId::parse(id).unwrap(), claim }).unwrap();
            let line: Option<serde_json::Value> = serde_json::from_slice(&out).ok();
            let found = line.as_ref().map(|line| line["resource_type"].as_str().unwrap());
            assert_eq!(found, resource_type, "{id}");
        }
    }
}
