//! `longhaul jobs create`.

use std::path::PathBuf;

use anyhow::Result;
use api::{CapabilityList, CreateJob, Retry};
use clap::Args;

use super::{json_argument, steer};
use crate::client::{Call, Connection};
use crate::due_time::{duration, time};
use crate::exit::Failed;

const EXAMPLES: &str = "Examples:
  longhaul jobs create 'say hello' --executor noop --input '{\"hello\": \"world\"}'
  longhaul jobs create 'long work' --executor slow --input @input.json --timeout 10m
  longhaul jobs create 'tonight' --executor noop --due-at 'in 6h' --tag nightly
  longhaul jobs create 'review' --assigned-peer reviewer --prompt-file review.md
  longhaul jobs create 'once' --executor noop --idempotency-key order-17 --json | jq -r .job_id

A job without an executor is pulled by a worker (POST /jobs/next, see examples/workers), or whoever does it reports with \
`longhaul jobs update`.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Create {
    /// For people
    title: String,
    /// The executor that shall do it: `longhaul executors` lists them
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// The executor's input: JSON, @file, or - for standard input
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Not before this time: RFC 3339, or how long from now (90s, 'in 15m', 2h, 3d, 1w)
    #[arg(long, value_name = "TIME")]
    due_at: Option<String>,
    /// When its result is of no use any more
    #[arg(long, value_name = "TIME")]
    deadline_at: Option<String>,
    /// The end of its lifetime
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
    /// Higher goes first within a lane
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// The lane that it queues in; its executor's own if left out. Without an executor it is pulled from there
    #[arg(long, value_name = "NAME")]
    lane: Option<String>,
    /// What whoever pulls it must have; for jobs without an executor and a lane
    #[arg(long)]
    label: Option<String>,
    /// Attempts in all; as the executor says if left out. Without an executor it is handed out up to 3 times when workers are lost
    #[arg(long, value_name = "NUMBER")]
    max_attempts: Option<u32>,
    /// Begin it once only, even if its worker is lost
    #[arg(long, conflicts_with = "max_attempts")]
    once: bool,
    /// The wait before the second attempt, doubled before each further one; as the executor says if left out
    #[arg(long, value_name = "TIME", value_parser = duration)]
    backoff: Option<std::time::Duration>,
    /// How long one attempt may run
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<std::time::Duration>,
    /// A label to find it by; may be given several times
    #[arg(long = "tag", value_name = "LABEL")]
    tags: Vec<String>,
    /// The name of this write: repeated with the same name it gives the same job
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// A free label
    #[arg(long, default_value = "general")]
    kind: String,
    /// Who creates it
    #[arg(long, value_name = "PEER")]
    created_by: Option<String>,
    /// Who owns it
    #[arg(long, value_name = "PEER")]
    owner: Option<String>,
    /// The peer that shall do it
    #[arg(long, value_name = "PEER")]
    assigned_peer: Option<String>,
    /// The durable workstream that it belongs to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// What joins it to other work
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// Who may see it
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    /// What made it
    #[arg(long, default_value = "cli", value_name = "KIND")]
    source_kind: String,
    /// Which one
    #[arg(long, value_name = "ID")]
    source_id: Option<String>,
    /// A free label of the creator
    #[arg(long)]
    scope: Option<String>,
    /// The prompt
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    prompt: Option<String>,
    /// A file with the prompt: it is read here and its text is sent
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// The folder that it is done in
    #[arg(long, value_name = "DIR")]
    path: Option<String>,
    /// claude-code, opencode, codex, gemini, antigravity, pi or mcp-http
    #[arg(long)]
    backend: Option<String>,
    /// Named extra arguments for the backend
    #[arg(long)]
    profile: Option<String>,
    /// Refused today: there are no calendars yet; create each job with --due-at
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "due_at")]
    cron: Option<String>,
    /// Where the result shall be shown
    #[arg(long, value_name = "NAME")]
    result_surface: Option<String>,
    /// Whether the worker's process lives for one job or on
    #[arg(long, value_parser = ["per-fire", "per_fire", "persistent"])]
    process_scope: Option<String>,
    /// Whether the worker goes on where it was
    #[arg(long, value_parser = ["resume", "fresh"])]
    continuity: Option<String>,
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(connection: &Connection, create: Create) -> Result<()> {
    let (json, key) = (create.json, create.idempotency_key.clone());
    let sent = sent(create)?;
    let call = Call { idempotency_key: key.as_deref(), ..Call::post("/jobs", &sent) };
    steer(connection, ("create", "Created job"), "", json, call)?;
    if let Some(executor) = &sent.executor {
        warn_of_stranger(connection, executor);
    }
    Ok(())
}

/// A job may name an executor that a node gets later; more often it is a slip of the pen.
fn warn_of_stranger(connection: &Connection, executor: &str) {
    // The job is accepted whatever comes of this question.
    let Ok(client) = connection.client() else { return };
    let Ok(list) = client.call::<CapabilityList>(Call::get("/v1/capabilities")) else { return };
    let names: Vec<&str> = list.capabilities.iter().map(|one| one.name.as_str()).collect();
    if !names.contains(&executor) {
        eprintln!(
            "warning: no executor is named {executor:?}{}; known: {}; the job fails unless one comes",
            config_file::hint(executor, &names),
            names.join(", ")
        );
    }
}

fn sent(create: Create) -> Result<CreateJob> {
    let when = |text: Option<String>| text.map(|text| time(&text)).transpose();
    let prompt = match (create.prompt, create.prompt_file) {
        (None, Some(path)) => Some(std::fs::read_to_string(&path).map_err(|error| {
            Failed::usage(format!("--prompt-file: cannot read {}: {error}", path.display()))
        })?),
        (prompt, _) => prompt,
    };
    let input = create.input.map(|text| json_argument("--input", &text)).transpose()?;
    let backoff_seconds = create.backoff.map(|wait| u32::try_from(wait.as_secs()).unwrap_or(u32::MAX));
    let asks = create.max_attempts.is_some() || backoff_seconds.is_some();
    let retry =
        asks.then(|| Retry { max_attempts: create.max_attempts, backoff_seconds, ..Retry::default() });
    Ok(CreateJob {
        kind: create.kind,
        executor: create.executor,
        input,
        due_at: when(create.due_at)?,
        deadline_at: when(create.deadline_at)?,
        expires_at: when(create.expires_at)?,
        priority: create.priority,
        lane: create.lane,
        label: create.label,
        retry,
        repeatable: create.once.then_some(false),
        timeout_seconds: create.timeout.map(|timeout| timeout.as_secs()),
        tags: create.tags,
        created_by_peer_id: create.created_by,
        owner_peer_id: create.owner,
        assigned_peer_id: create.assigned_peer,
        repowire_session_id: create.session,
        correlation_id: create.correlation_id,
        circle: create.circle,
        source_kind: Some(create.source_kind),
        source_id: create.source_id,
        scope: create.scope,
        prompt,
        path: create.path,
        backend: create.backend,
        profile: create.profile,
        cron: create.cron,
        result_surface: create.result_surface,
        process_scope: create.process_scope,
        continuity: create.continuity,
        ..CreateJob::titled(create.title)
    })
}
