//! `longhaul jobs show | result | why | facts`: reads, and nothing else.

use std::process::ExitCode;

use anyhow::Result;
use api::{FactList, JobResult, StatusAnswer, Why};

use super::{One, steer};
use crate::client::{Call, Connection, ENDS, Stream, job_path, segment};
use crate::commands::run::attempt;
use crate::exit::{FAILED, Failed};
use crate::show::{self, Table, plain, say, say_limit};

const PAGE: usize = api::limits::MAX_PAGE;

pub fn show(connection: &Connection, one: &One) -> Result<ExitCode> {
    let code = steer(connection, "show", &one.id, one.json, Call::get(&job_path(&one.id, "")))?;
    if !one.json {
        print_why(connection, &one.id)?;
    }
    Ok(code)
}

/// The limits that ended it or that bound it, and what it waits to be answered and how to.
fn print_why(connection: &Connection, id: &str) -> Result<()> {
    let why: Why = connection
        .client()?
        .call(Call::get(&job_path(id, "/why")))
        .map_err(|error| Failed::job("explain", id, &error))?;
    why.limits.iter().for_each(say_limit);
    if let Some(question) = why.question {
        say(format_args!("  question: {}", plain(question.get())));
        say(format_args!("  answer it: longhaul jobs answer {} --text '…'", plain(id)));
    }
    Ok(())
}

/// Fails while there is no result, so that a script notices.
pub fn result(connection: &Connection, one: &One) -> Result<ExitCode> {
    let (raw, result) = connection
        .client()?
        .result(&one.id)
        .map_err(|error| Failed::job("read the result of", &one.id, &error))?;
    if one.json {
        say(format_args!("{raw}"));
    }
    match result {
        JobResult::NotReady(not_ready) => {
            if !one.json {
                say(format_args!("{}", show::job("Not ready: job", &not_ready.status)));
            }
            Ok(ExitCode::from(FAILED))
        }
        JobResult::End(end) => {
            if !one.json {
                say(format_args!("Job {}\n  state: {}", end.job_id, end.state));
                let parts = [
                    ("summary", end.summary.map(|text| plain(&text))),
                    ("data", end.data.map(|raw| plain(raw.get()))),
                    ("error", end.error.map(|raw| plain(raw.get()))),
                    ("artifacts", Some(plain(end.artifacts.get())).filter(|text| text != "[]")),
                    ("completed_at", end.completed_at.map(|text| plain(&text))),
                ];
                for (name, value) in parts {
                    if let Some(value) = value {
                        say(format_args!("  {name}: {value}"));
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
        say(format_args!("{text}"));
        return Ok(ExitCode::SUCCESS);
    }
    let why: Why = serde_json::from_str(&text)?;
    say(format_args!("Job {} is {}", plain(&why.job_id), why.state));
    for reason in &why.reasons {
        let until = reason.until.as_deref().map(|until| format!(" (until {until})")).unwrap_or_default();
        say(format_args!("  {}: {}{until}", plain(&reason.code), plain(&reason.detail)));
    }
    if let Some(question) = &why.question {
        say(format_args!("  question: {}", plain(question.get())));
    }
    if let Some(line) = last_word(connection, &why) {
        say(format_args!("  its last line on standard error: {line}"));
    }
    match why.earliest_at {
        _ if ENDS.contains(&why.state.as_str()) => {}
        Some(at) => say(format_args!("  It can move by itself at {at}.")),
        None if why.reasons.is_empty() => say(format_args!("  Nothing keeps it.")),
        None => say(format_args!("  It waits for someone.")),
    }
    Ok(ExitCode::SUCCESS)
}

/// What the last attempt of a job said last on its standard error, if the job waits or is over because that attempt failed.
fn last_word(connection: &Connection, why: &Why) -> Option<String> {
    if !matches!(why.state.as_str(), "queued" | "failed" | "unavailable") {
        return None;
    }
    let client = connection.client().ok()?;
    let answer: StatusAnswer<'static> = client.call(Call::get(&job_path(&why.job_id, ""))).ok()?;
    let last = attempt(&answer.status).filter(|last| last.because.is_some())?;
    client.last_lines(&why.job_id, &last.id, Stream::Stderr, 1).ok()?.pop()
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
                say(format_args!("{}", serde_json::to_string(fact)?));
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
        say(format_args!("{}", table.text()));
    }
    Ok(ExitCode::SUCCESS)
}
