//! `longhaul jobs show | result | why | facts`: reads, and nothing else.

use std::process::ExitCode;

use anyhow::Result;
use api::{JobResult, Why};

use super::{One, steer};
use crate::client::{Attempt, Call, Connection, ENDS, Stream, job_path};
use crate::exit::{FAILED, Failed};
use crate::show::{self, Table, plain, say, say_json};

pub fn show(connection: &Connection, one: &One) -> Result<()> {
    steer(connection, ("show", "Job"), &one.id, one.print.json, Call::get(&job_path(&one.id, "")))?;
    if one.print.json {
        return Ok(());
    }
    // The limits that ended it or that bound it, and what it waits to be answered and how to.
    let why: Why =
        connection.client()?.ask_of_job("explain", &one.id, Call::get(&job_path(&one.id, "/why")))?;
    why.limits.iter().map(show::limit).for_each(say);
    if let Some(question) = why.question {
        say(format_args!("  question: {}", plain(question.get())));
        say(format_args!("  answer it: longhaul jobs answer {} --text '…'", plain(&one.id)));
    }
    Ok(())
}

/// Fails while there is no result, so that a script notices.
pub fn result(connection: &Connection, one: &One) -> Result<ExitCode> {
    let (raw, result) = connection.client()?.result(&one.id)?;
    let code = if matches!(result, JobResult::End(_)) { ExitCode::SUCCESS } else { ExitCode::from(FAILED) };
    match result {
        _ if one.print.json => say(raw),
        JobResult::NotReady(not_ready) => say(show::job("Not ready: job", &not_ready.status)),
        JobResult::End(end) => {
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
    }
    Ok(code)
}

pub fn why(connection: &Connection, one: &One) -> Result<()> {
    let text = connection.client()?.text(Call::get(&job_path(&one.id, "/why")));
    let text = text.map_err(|error| Failed::job("explain", &one.id, error))?;
    if one.print.json {
        say(text);
        return Ok(());
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
        None if why.reasons.is_empty() => say("  Nothing keeps it."),
        None => say("  It waits for someone."),
    }
    Ok(())
}

/// What the last attempt of a job said last on its standard error, if the job waits or is over because that attempt failed.
fn last_word(connection: &Connection, why: &Why) -> Option<String> {
    if !matches!(why.state.as_str(), "queued" | "failed" | "unavailable") {
        return None;
    }
    let client = connection.client().ok()?;
    let last = Attempt::of(&client.status(&why.job_id).ok()?).filter(|last| last.because.is_some())?;
    client.last_lines(&why.job_id, &last.id, Stream::Stderr, 1).ok()?.pop()
}

pub fn facts(connection: &Connection, one: &One) -> Result<()> {
    let mut table = Table::new(&["Version", "At", "Fact", "Actor", "Payload"]);
    for page in connection.client()?.pages_of_facts(&one.id) {
        for fact in &page.map_err(|error| Failed::job("read the facts of", &one.id, error))?.facts {
            if one.print.json {
                say_json(fact)?;
                continue;
            }
            let version = fact.version.to_string();
            table.row(&[&version, &fact.at, &fact.kind, &fact.actor, fact.payload.get()]);
        }
    }
    if !one.print.json {
        say(table);
    }
    Ok(())
}
