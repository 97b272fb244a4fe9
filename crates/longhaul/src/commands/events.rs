//! `longhaul events`: what was published, what came of it, and publishing.

use std::collections::HashMap;

use anyhow::{Context, Result};
use api::{Event, EventAnswer, EventList, EventPublished, JsonObject, PublishEvent};
use clap::{Args, Subcommand};
use domain::event::{EventFact, Settlement};
use serde_json::value::RawValue;

use crate::client::{Call, Client, query, segment};
use crate::exit::Failed;
use crate::show::{PageArgs, PrintArgs, Table, plain, say};

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
#[derive(Subcommand)]
#[command(after_help = EXAMPLES, mut_subcommands = |verb| verb.after_help(EXAMPLES))]
pub enum Verb {
    /// Events, newest first
    List(List),
    /// One event, and what came of it
    Show {
        /// The event
        id: String,
        #[command(flatten)]
        print: PrintArgs,
    },
    /// Write an event down
    Publish(Publish),
    /// Print every event as it is published and settled, until it is interrupted
    Tail {
        /// Only what comes after this place in the ledger
        #[arg(long, default_value_t = 0, value_name = "POSITION")]
        after: u64,
    },
}

#[derive(Args)]
pub struct List {
    /// Only of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only those that are waiting, routed, declined or `no_route`
    #[arg(long)]
    status: Option<String>,
    /// Only of this circle
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Args)]
pub struct Publish {
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
    #[command(flatten)]
    print: PrintArgs,
}

pub fn run(client: &Client, verb: Verb) -> Result<()> {
    match verb {
        Verb::List(List { kind, status, circle, page }) => {
            let asked = [("type", &kind), ("status", &status), ("circle", &circle), ("cursor", &page.cursor)];
            let path = format!("/events?{}", query(&asked));
            let found: EventList = client.ask("list events", Call::get(&path))?;
            page.print(&found, found.next_cursor.as_deref(), table)
        }
        Verb::Show { id, print } => {
            print.print(&client.ask("show event", Call::get(&format!("/events/{}", segment(&id))))?, shown)
        }
        Verb::Publish(publish) => send(client, publish),
        Verb::Tail { after } => tail(client, after),
    }
}

/// What was given as JSON, or is in the file that was named.
pub(super) fn object(flag: &str, given: Option<&str>) -> Result<Option<JsonObject>> {
    let Some(given) = given else { return Ok(None) };
    let text = match given.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("{file} cannot be read"))?,
        None => given.to_owned(),
    };
    let object = JsonObject::parse(text.trim());
    object.map(Some).map_err(|error| Failed::usage(format!("{flag} is no JSON object: {error}")).into())
}

fn table(list: &EventList) -> Table {
    let mut table = Table::new(&["ID", "Type", "Status", "Came to", "Published", "From", "Circle"]);
    for event in &list.events {
        let Event { event_id, kind, status, published_at, origin, .. } = event;
        let circle = event.circle.as_deref().unwrap_or_default();
        let routes = event.routes.iter().map(|route| format!("{} {}", route.pipeline, route.disposition));
        table.row(&[event_id, kind, status, &in_short(routes), published_at, &origin.kind, circle]);
    }
    table
}

/// An event, and what came of it.
fn shown(answer: &EventAnswer) -> String {
    let event = &answer.event;
    let mut lines = vec![format!("{}: {} is {}", event.event_id, plain(&event.kind), event.status)];
    lines.extend(event.payload.as_ref().map(|payload| format!("payload: {}", plain(payload.as_str()))));
    if event.moved_its_run {
        lines.push("The run of the job that emitted it went on with it".to_owned());
    }
    let mut table = Table::new(&["Pipeline", "Came to", "Run", "Why"]);
    for route in &event.routes {
        let (run, why) = (route.run_id.as_deref().unwrap_or_default(), route.reason.as_deref());
        table.row(&[&route.pipeline, &route.disposition, run, why.unwrap_or_default()]);
    }
    lines.push(table.to_string());
    lines.join("\n")
}

fn send(client: &Client, publish: Publish) -> Result<()> {
    let sent = PublishEvent {
        kind: publish.kind,
        payload: object("--payload", publish.payload.as_deref())?,
        dedupe_key: publish.dedupe_key,
        correlation: object("--correlation", publish.correlation.as_deref())?,
        circle: publish.circle,
    };
    let call = Call { idempotency_key: publish.idempotency_key.as_deref(), ..Call::post("/events", &sent) };
    publish.print.print(&client.ask("publish", call)?, |EventPublished { event_id: id, .. }| {
        format!("Published {id}; `longhaul events show {id}` shows what came of it")
    })
}

fn tail(client: &Client, mut after: u64) -> Result<()> {
    let mut types = HashMap::new();
    loop {
        let mut facts = client.ledger_after(after).map_err(|error| Failed::to("tail", error))?;
        while let Some(told) = facts.next() {
            after = told.position.unwrap_or(after);
            let (stream, kind) = (told.stream.unwrap_or_default(), told.kind.unwrap_or_default());
            if stream.starts_with("event-") {
                let about = about(&stream, told.payload.as_deref(), &mut types);
                let line = format!("{after} {} {kind} {stream} {about}", told.at.unwrap_or_default());
                say(plain(line.trim_end()));
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
