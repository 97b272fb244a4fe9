//! `longhaul export`: the ledger and the claims as JSON lines, as they are stored. Facts of earlier versions are exported without the words
//! of a service that some of them hold; the checksum is over what the ledger holds.

mod production;

use std::io::{BufWriter, ErrorKind, StdoutLock, Write};

use anyhow::Result;
use clap::{Args, Subcommand};
use domain::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use store::{StoreError, lift_fact};
use store_sql::{ClaimLine, FactLine, PostgresLedger, claims_after, facts_after, open_for_reading};

use crate::database::{Location, Place};

const EXAMPLES: &str = "Examples:
  longhaul export facts > facts.jsonl             the whole ledger as JSON lines
  longhaul export facts --after 1200              what came since
  longhaul export claims                          who holds what";

/// Write what is stored to standard output
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Export {
    /// The ledger, one fact per line as JSON, in the order of commits; may run beside a daemon
    Facts(Since),
    /// Who holds what or held it last, one claim record per line as JSON; may run beside a daemon
    Claims(Location),
    /// The facts of work outside, with flat payloads
    Productions(Since),
}

#[derive(Args)]
pub struct Since {
    #[command(flatten)]
    store: Location,
    /// Only facts after this position
    #[arg(long, default_value_t = 0, value_name = "POSITION")]
    after: u64,
}

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

/// What comes after a place, page by page; the last page is empty.
type Pages<P, T> = Box<dyn Fn(&P) -> Result<Vec<T>, StoreError>>;

fn fact_pages(location: &Location) -> Result<Pages<u64, FactLine>> {
    Ok(match location.place_of_store()? {
        Place::File(path) => {
            let connection = open_for_reading(&path)?;
            Box::new(move |position| facts_after(&connection, *position))
        }
        Place::Server(address) => {
            let runtime = super::runtime()?;
            let ledger = runtime.block_on(PostgresLedger::open(&address))?;
            Box::new(move |position| runtime.block_on(ledger.facts_after(*position)))
        }
    })
}

fn claim_pages(location: &Location) -> Result<Pages<String, ClaimLine>> {
    Ok(match location.place_of_store()? {
        Place::File(path) => {
            let connection = open_for_reading(&path)?;
            Box::new(move |record_id| claims_after(&connection, record_id))
        }
        Place::Server(address) => {
            let runtime = super::runtime()?;
            let ledger = runtime.block_on(PostgresLedger::open(&address))?;
            Box::new(move |record_id| runtime.block_on(ledger.claims_after(record_id)))
        }
    })
}

/// Writes every line of every page. That nobody reads on, as in `longhaul export facts | head`, is no failure.
fn export<P, T>(
    pages: &Pages<P, T>,
    begin: P,
    place: impl Fn(&T) -> P,
    write: impl Fn(&mut BufWriter<StdoutLock<'_>>, &T) -> Result<()>,
) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut after = begin;
    let mut write_all = || -> Result<()> {
        loop {
            let page = pages(&after)?;
            let Some(last) = page.last() else { return Ok(out.flush()?) };
            after = place(last);
            page.iter().try_for_each(|line| write(&mut out, line))?;
        }
    };
    match write_all() {
        Err(error) if error.downcast_ref().map(std::io::Error::kind) == Some(ErrorKind::BrokenPipe) => Ok(()),
        ended => ended,
    }
}

pub fn run(what: &Export) -> Result<()> {
    match what {
        Export::Facts(Since { store, after }) => {
            export(&fact_pages(store)?, *after, |line| line.position, |out, line| write_fact(out, line))
        }
        Export::Claims(store) => {
            let id = |line: &ClaimLine| line.id.as_str().to_owned();
            export(&claim_pages(store)?, String::new(), id, |out, line| write_claim(out, line))
        }
        Export::Productions(Since { store, after }) => {
            export(&fact_pages(store)?, *after, |line| line.position, |out, line| write_production(out, line))
        }
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
    write_line(out, &record)
}

fn write_line(out: &mut impl Write, line: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, line).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

pub(super) fn rfc3339(at: Timestamp) -> Result<String> {
    Ok(jiff::Timestamp::from_microsecond(at.micros())?.to_string())
}

fn write_fact(out: &mut impl Write, fact: &FactLine) -> Result<()> {
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
    write_line(out, &line)
}

fn write_production(out: &mut impl Write, fact: &FactLine) -> Result<()> {
    let Some(payload) = production::flat(&fact.kind, &fact.payload)? else { return Ok(()) };
    let line = serde_json::json!({
        "seq": fact.position,
        "object_id": fact.stream,
        "object_type": "external_production_record",
        "event_kind": fact.kind.split('/').next().unwrap_or_default(),
        "payload": payload,
        "created_at": rfc3339(fact.at)?,
        "actor_id": fact.actor,
    });
    write_line(out, &line)
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
        write_fact(&mut out, &fact).unwrap();
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
            let (owner, at) = (OwnerId::new("worker"), Timestamp::from_micros(0));
            let claim = Claim { owner, lease_expires_at: at, heartbeat_at: at, claim_version: 1 };
            let mut out = Vec::new();
            write_claim(&mut out, &ClaimLine { id: RecordId::parse(id).unwrap(), claim }).unwrap();
            let line: Option<serde_json::Value> = serde_json::from_slice(&out).ok();
            let found = line.as_ref().map(|line| line["resource_type"].as_str().unwrap());
            assert_eq!(found, resource_type, "{id}");
        }
    }
}
