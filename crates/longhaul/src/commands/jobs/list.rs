//! `longhaul jobs list`.

use std::process::ExitCode;

use anyhow::Result;
use api::JobList;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::client::{Call, Client, Connection, segment};
use crate::exit::Failed;
use crate::show::{Table, say};

const EXAMPLES: &str = "Examples:
  longhaul jobs list
  longhaul jobs list --state failed --limit 20
  longhaul jobs list --json | jq -r '.work[] | select(.kind == \"render\") | .job_id'";

/// The most that the daemon gives at once.
const PAGE: usize = api::limits::MAX_PAGE;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct List {
    /// Only jobs in this state
    #[arg(long)]
    state: Option<String>,
    /// Only jobs of this owner
    #[arg(long, value_name = "PEER")]
    owner: Option<String>,
    /// Only jobs that this peer created
    #[arg(long, value_name = "PEER")]
    created_by: Option<String>,
    /// Only jobs of this workstream
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only jobs of this circle
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    /// Only jobs with this tag
    #[arg(long, value_name = "LABEL")]
    tag: Option<String>,
    /// Only jobs whose work a service knows by this id
    #[arg(long, value_name = "ID")]
    external_job_id: Option<String>,
    /// The most jobs to show
    #[arg(long, default_value_t = 100, value_name = "NUMBER")]
    limit: usize,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

/// A page as it came, not interpreted.
#[derive(Deserialize)]
struct RawPage {
    work: Vec<Box<RawValue>>,
    recurring: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct RawList {
    work: Vec<Box<RawValue>>,
    recurring: Vec<Box<RawValue>>,
    #[serde(skip)]
    has_more: bool,
}

pub fn run(connection: &Connection, list: &List) -> Result<ExitCode> {
    let client = connection.client()?;
    let all = read(&client, list)?;
    if all.has_more {
        eprintln!("longhaul: only the {} jobs that changed last; --limit shows more", all.work.len());
    }
    if list.json {
        say(format_args!("{}", serde_json::to_string(&all)?));
        return Ok(ExitCode::SUCCESS);
    }
    if all.work.is_empty() {
        say(format_args!("No jobs."));
        return Ok(ExitCode::SUCCESS);
    }
    let shown: JobList<'static> = serde_json::from_str(
        &serde_json::json!({ "work": all.work, "recurring": [], "next_cursor": null }).to_string(),
    )?;
    let mut table = Table::new(&["ID", "State", "Title", "Kind", "Owner", "Due", "Updated"]);
    for job in &shown.work {
        let or_nothing =
            |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
        let (owner, due) = (or_nothing(&job.owner_peer_id), or_nothing(&job.due_at));
        table.row(&[&job.job_id, &job.state, &job.title, &job.kind, &owner, &due, &short(&job.updated_at)]);
    }
    say(format_args!("{}", table.text()));
    Ok(ExitCode::SUCCESS)
}

fn read(client: &Client, list: &List) -> Result<RawList> {
    let view = if list.json { "full" } else { "summary" };
    let mut filter = format!("view={view}");
    for (name, value) in [
        ("state", &list.state),
        ("owner_peer_id", &list.owner),
        ("created_by_peer_id", &list.created_by),
        ("repowire_session_id", &list.session),
        ("circle", &list.circle),
        ("tag", &list.tag),
        ("external_job_id", &list.external_job_id),
    ] {
        if let Some(value) = value {
            filter = format!("{filter}&{name}={}", segment(value));
        }
    }
    let mut all = RawList { work: Vec::new(), recurring: Vec::new(), has_more: true };
    let mut cursor = String::new();
    while all.work.len() < list.limit {
        let limit = PAGE.min(list.limit - all.work.len());
        let path = format!("/jobs?{filter}&limit={limit}{cursor}");
        let page: RawPage = client.call(Call::get(&path)).map_err(|error| Failed::job("list", "", &error))?;
        all.work.extend(page.work);
        all.recurring.extend(page.recurring);
        match page.next_cursor {
            Some(next) => cursor = format!("&cursor={}", segment(&next)),
            None => {
                all.has_more = false;
                break;
            }
        }
    }
    Ok(all)
}

/// To the second.
fn short(at: &str) -> String {
    at.get(..19).unwrap_or(at).replace('T', " ")
}
