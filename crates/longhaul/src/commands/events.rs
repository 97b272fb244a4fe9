//! `longhaul events`: what was published, what came of it, and publishing.

use std::collections::HashMap;
use std::process::ExitCode;

use anyhow::{Context, Result};
use api::{EventAnswer, EventList, EventPublished, JsonObject, PublishEvent};
use clap::{Args, Subcommand};
use domain::event::{EventFact, Settlement};
use serde_json::value::RawValue;

use crate::client::{Call, Client, Connection, segment};
use crate::exit::Failed;
use crate::show::{Table, plain, say};

const EXAMPLES: &str = "Examples:
  longhaul events publish tide.changed --payload '{\"level\": 2140}'
  longhaul events publish tide.changed --payload @tide.json --dedupe-key tide-7
  longhaul events publish agentic.start --payload @goal.json --correlation '{\"request\": \"r-1\"}'
  longhaul events list --type tide.changed --status declined
  longhaul events show event-0123          what it says, and what came of it for every pipeline
  longhaul events tail                     every event as it is published and settled

An event is durable when `publish` answers. It starts every pipeline that listens to its type and whose condition holds; the \
same dedupe key starts a pipeline no second time while its work goes on or was done lately.";

/// Pipelines of which a line tells what an event came to; `show` has the rest.
const MOST_TOLD: usize = 4;
/// Events that are not settled whose types are remembered for the line that says so.
const MOST_UNSETTLED: usize = 10_000;

/// Publish events, and see what came of them
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct EventsArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Events, newest first
    #[command(after_help = EXAMPLES)]
    List(List),
    /// One event, and what came of it
    #[command(after_help = EXAMPLES)]
    Show {
        /// The event
        #[arg(value_name = "ID")]
        id: String,
        /// Print JSON for machines
        #[arg(long)]
        json: bool,
    },
    /// Write an event down
    #[command(after_help = EXAMPLES)]
    Publish(Publish),
    /// Print every event as it is published and settled, until it is interrupted
    #[command(after_help = EXAMPLES)]
    Tail {
        /// Only what comes after this place in the ledger
        #[arg(long, default_value_t = 0, value_name = "POSITION")]
        after: u64,
    },
}

#[derive(Args)]
struct List {
    /// Only of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only those that are waiting, routed, declined or `no_route`
    #[arg(long)]
    status: Option<String>,
    /// Only of this circle
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    /// Go on after this one
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Publish {
    /// Its type: pipelines listen to exactly one
    #[arg(value_name = "TYPE")]
    kind: String,
    /// What it says: a JSON object, or @FILE [default: {}]
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// What names the same thing
    #[arg(long, value_name = "KEY")]
    dedupe_key: Option<String>,
    /// What is carried with everything that follows from it: a JSON object of up to 2 KiB, or @FILE
    #[arg(long, value_name = "JSON")]
    correlation: Option<String>,
    /// The circle that sees it
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    /// Names this request: repeated with the same key it publishes nothing anew
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: EventsArguments) -> Result<ExitCode> {
    let client = arguments.connection.client()?;
    match arguments.verb {
        Verb::List(list) => show_list(&client, &list)?,
        Verb::Show { id, json } => show(&client, &id, json)?,
        Verb::Publish(publish) => send(&client, publish)?,
        Verb::Tail { after } => tail(&client, after)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What was given as the payload.
pub(super) fn payload(given: Option<&str>) -> Result<Option<JsonObject>> {
    object("--payload", given)
}

/// What was given as JSON, or is in the file that was named.
fn object(flag: &str, given: Option<&str>) -> Result<Option<JsonObject>> {
    let Some(given) = given else { return Ok(None) };
    let text = match given.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("{file} cannot be read"))?,
        None => given.to_owned(),
    };
    let object = JsonObject::parse(text.trim());
    object.map(Some).map_err(|error| Failed::usage(format!("{flag} is no JSON object: {error}")).into())
}

/// The parts of a query that were given.
pub(super) fn query(parts: &[(&str, &Option<String>)]) -> String {
    let given = parts.iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    given.map(|(name, value)| format!("{name}={}", segment(value))).collect::<Vec<_>>().join("&")
}

fn show_list(client: &Client, list: &List) -> Result<()> {
    let parts =
        [("type", &list.kind), ("status", &list.status), ("circle", &list.circle), ("cursor", &list.cursor)];
    let path = format!("/events?{}", query(&parts));
    let found: EventList =
        client.call(Call::get(&path)).map_err(|error| Failed::to("list events", &error))?;
    if list.json {
        say(format_args!("{}", serde_json::to_string(&found)?));
        return Ok(());
    }
    let mut table = Table::new(&["ID", "Type", "Status", "Came to", "Published", "From", "Circle"]);
    for event in &found.events {
        let circle = event.circle.as_deref().unwrap_or_default();
        let routes = event.routes.iter().map(|route| format!("{} {}", route.pipeline, route.disposition));
        table.row(&[
            &event.event_id,
            &event.kind,
            &event.status,
            &in_short(routes),
            &event.published_at,
            &event.origin.kind,
            circle,
        ]);
    }
    say(format_args!("{}", table.text()));
    if let Some(next) = &found.next_cursor {
        eprintln!("longhaul: there may be more; go on with --cursor {next}");
    }
    Ok(())
}

fn show(client: &Client, id: &str, json: bool) -> Result<()> {
    let path = format!("/events/{}", segment(id));
    let answer: EventAnswer =
        client.call(Call::get(&path)).map_err(|error| Failed::to("show event", &error))?;
    if json {
        say(format_args!("{}", serde_json::to_string(&answer)?));
        return Ok(());
    }
    let event = &answer.event;
    say(format_args!("{}: {} is {}", event.event_id, plain(&event.kind), event.status));
    if let Some(payload) = &event.payload {
        say(format_args!("payload: {}", plain(payload.as_str())));
    }
    if event.moved_its_run {
        say(format_args!("The run of the job that emitted it went on with it"));
    }
    let mut table = Table::new(&["Pipeline", "Came to", "Run", "Why"]);
    for route in &event.routes {
        let (run, why) = (route.run_id.as_deref().unwrap_or_default(), route.reason.as_deref());
        table.row(&[&route.pipeline, &route.disposition, run, why.unwrap_or_default()]);
    }
    say(format_args!("{}", table.text()));
    Ok(())
}

fn send(client: &Client, publish: Publish) -> Result<()> {
    let sent = PublishEvent {
        kind: publish.kind,
        payload: payload(publish.payload.as_deref())?,
        dedupe_key: publish.dedupe_key,
        correlation: object("--correlation", publish.correlation.as_deref())?,
        circle: publish.circle,
    };
    let mut call = Call::post("/events", &sent);
    call.idempotency_key = publish.idempotency_key.as_deref();
    let answer: EventPublished = client.call(call).map_err(|error| Failed::to("publish", &error))?;
    if publish.json {
        say(format_args!("{}", serde_json::to_string(&answer)?));
    } else {
        let id = &answer.event_id;
        say(format_args!("Published {id}; `longhaul events show {id}` shows what came of it"));
    }
    Ok(())
}

fn tail(client: &Client, mut after: u64) -> Result<()> {
    let mut types = HashMap::new();
    loop {
        let mut facts = client.ledger_after(after).map_err(|error| Failed::to("tail", &error))?;
        while let Some(told) = facts.next() {
            after = told.position.unwrap_or(after);
            let (stream, kind) = (told.stream.unwrap_or_default(), told.kind.unwrap_or_default());
            if stream.starts_with("event-") {
                let about = about(&stream, told.payload.as_deref(), &mut types);
                let line = format!("{after} {} {kind} {stream} {about}", told.at.unwrap_or_default());
                say(format_args!("{}", plain(line.trim_end())));
            }
        }
    }
}

/// The type of an event, and what it came to once it is settled. The fact of that names no type: it was told before.
fn about(id: &str, payload: Option<&RawValue>, types: &mut HashMap<String, String>) -> String {
    match payload.and_then(|payload| serde_json::from_str(payload.get()).ok()) {
        Some(EventFact::Published(new)) => {
            if types.len() >= MOST_UNSETTLED {
                types.clear();
            }
            types.insert(id.to_owned(), new.kind.clone());
            new.kind
        }
        Some(EventFact::Settled(settlement)) => {
            format!("{} {}", types.remove(id).unwrap_or_default(), came_to(&settlement))
        }
        Some(EventFact::TimersMoved { .. } | EventFact::Retired) | None => String::new(),
    }
}

fn came_to(settlement: &Settlement) -> String {
    let routes = settlement.routes.iter();
    let routes = routes.map(|routed| format!("{} {}", routed.pipeline, routed.disposition.as_str()));
    match (settlement.moved_its_run, settlement.routes.is_empty()) {
        (false, true) => "no_route".to_owned(),
        (true, true) => "its run went on".to_owned(),
        (false, false) => in_short(routes),
        (true, false) => format!("its run went on, {}", in_short(routes)),
    }
}

fn in_short(routes: impl ExactSizeIterator<Item = String>) -> String {
    let more = routes.len().saturating_sub(MOST_TOLD);
    let told = routes.take(MOST_TOLD).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{told} and {more} more") } else { told }
}
