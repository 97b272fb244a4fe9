//! `longhaul jobs list`.

use anyhow::Result;
use api::JobStatus;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::client::{Call, Client, Connection, query, segment};
use crate::show::{PrintArgs, Table, say, say_json};

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
    #[command(flatten)]
    print: PrintArgs,
}

/// A page, or all of them, as they came: jobs are not interpreted.
#[derive(Deserialize, Serialize)]
struct Page {
    work: Vec<Box<RawValue>>,
    recurring: Vec<Box<RawValue>>,
    #[serde(skip_serializing)]
    next_cursor: Option<String>,
}

pub fn run(connection: &Connection, list: &List) -> Result<()> {
    let all = read(&connection.client()?, list)?;
    if all.next_cursor.is_some() {
        eprintln!("longhaul: only the {} jobs that changed last; --limit shows more", all.work.len());
    }
    if list.print.json {
        return say_json(&all);
    }
    if all.work.is_empty() {
        say("No jobs.");
        return Ok(());
    }
    let mut table = Table::new(&["ID", "State", "Title", "Kind", "Owner", "Due", "Updated"]);
    for job in &all.work {
        let job: JobStatus<'static> = serde_json::from_str(job.get())?;
        let owner = job.owner_peer_id.as_deref().unwrap_or_default();
        let due = job.due_at.as_deref().unwrap_or_default();
        table.row(&[&job.job_id, &job.state, &job.title, &job.kind, owner, due, &short(&job.updated_at)]);
    }
    say(table);
    Ok(())
}

fn read(client: &Client, list: &List) -> Result<Page> {
    let view = if list.print.json { "full" } else { "summary" };
    let filter = query(&[
        ("view", &Some(view.to_owned())),
        ("state", &list.state),
        ("owner_peer_id", &list.owner),
        ("created_by_peer_id", &list.created_by),
        ("repowire_session_id", &list.session),
        ("circle", &list.circle),
        ("tag", &list.tag),
        ("external_job_id", &list.external_job_id),
    ]);
    let mut all = Page { work: Vec::new(), recurring: Vec::new(), next_cursor: Some(String::new()) };
    while let Some(cursor) = all.next_cursor.take_if(|_| all.work.len() < list.limit) {
        let limit = PAGE.min(list.limit - all.work.len());
        let cursor = if cursor.is_empty() { cursor } else { format!("&cursor={}", segment(&cursor)) };
        let path = format!("/jobs?{filter}&limit={limit}{cursor}");
        let page: Page = client.ask_of_job("list", "", Call::get(&path))?;
        all.work.extend(page.work);
        all.recurring.extend(page.recurring);
        all.next_cursor = page.next_cursor;
    }
    Ok(all)
}

/// To the second.
fn short(at: &str) -> String {
    at.get(..19).unwrap_or(at).replace('T', " ")
}
