//! `longhaul jobs show | result | why | facts`: reads, and nothing else.

use std::process::ExitCode;

use anyhow::Result;
use api::{FactList, JobResult, Why};

use super::{One, steer};
use crate::client::{Call, Connection, ENDS, job_path, segment};
use crate::exit::{FAILED, Failed};
use crate::show::{self, Table, plain};

const PAGE: usize = api::limits::MAX_PAGE;

pub fn show(connection: &Connection, one: &One) -> Result<ExitCode> {
    steer(connection, "show", &one.id, one.json, Call::get(&job_path(&one.id, "")))
}

/// Fails while there is no result, so that a script notices.
pub fn result(connection: &Connection, one: &One) -> Result<ExitCode> {
    let (raw, result) = connection
        .client()?
        .result(&one.id)
        .map_err(|error| Failed::job("read the result of", &one.id, &error))?;
    if one.json {
        println!("{raw}");
    }
    match result {
        JobResult::NotReady(not_ready) => {
            if !one.json {
                println!("{}", show::job("Not ready: job", &not_ready.status));
            }
            Ok(ExitCode::from(FAILED))
        }
        JobResult::End(end) => {
            if !one.json {
                println!("Job {}\n  state: {}", end.job_id, end.state);
                let parts = [
                    ("summary", end.summary.map(|text| plain(&text))),
                    ("data", end.data.map(|raw| plain(raw.get()))),
                    ("error", end.error.map(|raw| plain(raw.get()))),
                    ("artifacts", Some(plain(end.artifacts.get())).filter(|text| text != "[]")),
                    ("completed_at", end.completed_at.map(|text| plain(&text))),
                ];
                for (name, value) in parts {
                    if let Some(value) = value {
                        println!("  {name}: {value}");
                    }
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

pub fn why(connection: &Connection, one: &One) -> Result<ExitCode> {
    let text = connection.client()?.text(Call::get(&job_path(&one.id, "/why")));
    let text = text.map_err(|error| Failed::job("explain", &one.id, &error))?;
    if one.json {
        println!("{text}");
        return Ok(ExitCode::SUCCESS);
    }
    let why: Why = serde_json::from_str(&text)?;
    println!("Job {} is {}", plain(&why.job_id), why.state);
    for reason in &why.reasons {
        let until = reason.until.as_deref().map(|until| format!(" (until {until})")).unwrap_or_default();
        println!("  {}: {}{until}", plain(&reason.code), plain(&reason.detail));
    }
    match why.earliest_at {
        _ if ENDS.contains(&why.state.as_str()) => {}
        Some(at) => println!("  It can move by itself at {at}."),
        None if why.reasons.is_empty() => println!("  Nothing keeps it."),
        None => println!("  It waits for someone."),
    }
    Ok(ExitCode::SUCCESS)
}

pub fn facts(connection: &Connection, one: &One) -> Result<ExitCode> {
    let client = connection.client()?;
    let mut table = Table::new(&["Version", "At", "Fact", "Actor", "Payload"]);
    let mut cursor = String::new();
    loop {
        let path = job_path(&one.id, &format!("/facts?limit={PAGE}{cursor}"));
        let page: FactList<'static> = client
            .call(Call::get(&path))
            .map_err(|error| Failed::job("read the facts of", &one.id, &error))?;
        for fact in &page.facts {
            if one.json {
                println!("{}", serde_json::to_string(fact)?);
            } else {
                table.row(&[
                    &fact.version.to_string(),
                    &fact.at,
                    &fact.kind,
                    &fact.actor,
                    fact.payload.get(),
                ]);
            }
        }
        match page.next_cursor {
            Some(next) => cursor = format!("&cursor={}", segment(&next)),
            None => break,
        }
    }
    if !one.json {
        println!("{}", table.text());
    }
    Ok(ExitCode::SUCCESS)
}
