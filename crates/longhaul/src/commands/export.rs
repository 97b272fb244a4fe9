//! `longhaul export`: the ledger and the claims as JSON lines, as they are stored. Facts of earlier versions are exported without the words
//! of a service that some of them hold; the checksum is over what the ledger holds.

mod production;

use std::io::{BufWriter, ErrorKind, Write};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::Result;
use domain::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use store::{StoreError, lift_fact};
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
    let resource_type = if line.id.as_job().is_some() {
        "WORKORDER"
    } else if line.id.as_event().is_some() {
        "EVENT"
    } else {
        // The claim record of the contract knows no other kind; these claims are the daemon's own business.
        return Ok(());
    };
    let record = ClaimRecord {
        resource_type,
        resource_id: line.id.as_str(),
        owner_id: line.claim.owner.outside_name().unwrap_or_else(|| line.claim.owner.as_str()),
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
    let (kind, payload) = lift_fact(&fact.kind, &fact.payload);
    let line = Line {
        position: fact.position,
        stream: &fact.stream,
        version: fact.version,
        fact_id: fact.id.to_string(),
        kind: &kind,
        at: rfc3339(fact.at)?,
        actor: &fact.actor,
        causation_id: fact.causation_id.as_deref(),
        correlation_id: fact.correlation_id.as_deref(),
        payload: serde_json::from_str(&payload).map_err(|error| {
            StoreError::Broken(format!("the payload at position {} is not JSON: {error}", fact.position))
        })?,
        checksum: fact.checksum.to_string(),
    };
    serde_json::to_writer(&mut *out, &line).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// `longhaul export productions`: the facts that drive work outside, with flat payloads.
pub fn productions(location: &Location, after: u64) -> Result<ExitCode> {
    let ledger = Ledger::open(location)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut position = after;
    loop {
        let page = (ledger.facts_after)(position)?;
        let Some(last) = page.last() else { break };
        position = last.position;
        for fact in &page {
            if let Some(payload) = production::flat(&fact.kind, &fact.payload)?
                && let Err(error) = write_production(&mut out, fact, payload)
            {
                return stopped_reading(error);
            }
        }
    }
    match out.flush() {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => stopped_reading(error.into()),
    }
}

fn write_production(out: &mut impl Write, fact: &FactLine, payload: serde_json::Value) -> Result<()> {
    let line = serde_json::json!({
        "seq": fact.position,
        "object_id": fact.stream,
        "object_type": "external_production_record",
        "event_kind": fact.kind.split('/').next().unwrap_or_default(),
        "payload": payload,
        "created_at": rfc3339(fact.at)?,
        "actor_id": fact.actor,
    });
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
    use store::{Checksum, FactId};

    use super::*;

    #[test]
    fn old_fact_is_exported_without_the_words_of_a_service() {
        let payload = r#"{"polled":{"error":{"code":"service_error","message":"no bed for PATIENT-7"},"next_poll_at":1}}"#;
        let fact = FactLine {
            position: 1,
            stream: "op-1".to_owned(),
            version: 2,
            id: FactId([7; 16]),
            kind: "external_production_polled/1".to_owned(),
            at: Timestamp::from_micros(0),
            actor: "worker".to_owned(),
            causation_id: None,
            correlation_id: None,
            payload: payload.to_owned(),
            checksum: Checksum([3; 16]),
        };
        let mut out = Vec::new();
        write_line(&mut out, &fact).unwrap();
        let line: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(line["payload"]["polled"]["error"], serde_json::json!({ "code": "service_error" }));
        assert_eq!(line["checksum"], fact.checksum.to_string(), "it is that of the ledger");
    }

    // conforms: A66
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
