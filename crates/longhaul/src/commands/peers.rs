//! `longhaul peers`: those who pull work: who is registered, who is there, and what each says of itself.

use std::process::ExitCode;

use anyhow::Result;
use api::{PeerAnswer, PeerForgotten, PeerList, RegisterPeer};
use clap::{Args, Subcommand};

use crate::client::{Call, Client, Connection, segment};
use crate::exit::Failed;
use crate::show::{Table, say};

const EXAMPLES: &str = "Examples:
  longhaul peers list                                      who is registered, and who is there
  longhaul peers list --circle blue --name reviewer
  longhaul peers show peer-blue-0123abcd
  longhaul peers register --id reviewer-1 --name reviewer --circle blue --label rust
  longhaul peers forget reviewer-1                         its jobs stay as they are

A job is assigned to a peer by its id, or by a name that only one peer of the circle has. A peer is present while it waits for \
work and for 90 seconds after it was heard of; an absent one may live all the same.";

/// See, register and forget those who pull work
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct PeersArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Who is registered, and who is there
    #[command(after_help = EXAMPLES)]
    List(List),
    /// One peer
    #[command(after_help = EXAMPLES)]
    Show {
        /// The peer
        #[arg(value_name = "ID")]
        id: String,
        /// Its circle, where several have a peer with this id; "" for no circle
        #[arg(long, short, value_name = "NAME")]
        circle: Option<String>,
        /// Print JSON for machines
        #[arg(long)]
        json: bool,
    },
    /// Register a peer, or say anew what it is
    #[command(after_help = EXAMPLES)]
    Register(Register),
    /// Forget a peer; its jobs stay as they are
    #[command(after_help = EXAMPLES)]
    Forget {
        /// The peer
        #[arg(value_name = "ID")]
        id: String,
        /// Its circle, where several have a peer with this id; "" for no circle
        #[arg(long, short, value_name = "NAME")]
        circle: Option<String>,
    },
}

#[derive(Args)]
struct List {
    /// Only of this circle
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    /// Only those that are called so
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only with this label
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Go on after this one
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Register {
    /// Its id, which no other peer of its circle has; made up if left out
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// What people call it; its id if left out
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The circle that it works in
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    /// What it may be picked by; may be given several times
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// What it can do; may be given several times
    #[arg(long = "capability", value_name = "WORD")]
    capabilities: Vec<String>,
    /// The folder that it works in
    #[arg(long, value_name = "FOLDER")]
    path: Option<String>,
    /// What it runs on
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: PeersArguments) -> Result<ExitCode> {
    let client = arguments.connection.client()?;
    match arguments.verb {
        Verb::List(list) => show_list(&client, &list)?,
        Verb::Show { id, circle, json } => {
            let path = path_of(&id, circle.as_deref());
            let answer: PeerAnswer =
                client.call(Call::get(&path)).map_err(|error| Failed::to("show peer", &error))?;
            show(&answer, json)?;
        }
        Verb::Register(register) => {
            let json = register.json;
            let sent = RegisterPeer {
                peer_id: register.id,
                display_name: register.name,
                circle: register.circle,
                labels: register.labels,
                capabilities: register.capabilities,
                path: register.path,
                backend: register.backend,
                metadata: None,
            };
            let answer: PeerAnswer = client
                .call(Call::post("/peers", &sent))
                .map_err(|error| Failed::to("register peer", &error))?;
            show(&answer, json)?;
        }
        Verb::Forget { id, circle } => {
            let path = path_of(&id, circle.as_deref());
            let forgotten: PeerForgotten =
                client.call(Call::delete(&path)).map_err(|error| Failed::to("forget peer", &error))?;
            say(format_args!("Forgot peer {}", forgotten.peer_id));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn path_of(id: &str, circle: Option<&str>) -> String {
    let circle = circle.map(|circle| format!("?circle={}", segment(circle))).unwrap_or_default();
    format!("/peers/{}{circle}", segment(id))
}

fn show_list(client: &Client, list: &List) -> Result<()> {
    let asked = [
        ("circle", &list.circle),
        ("display_name", &list.name),
        ("label", &list.label),
        ("cursor", &list.cursor),
    ];
    let asked = asked.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    let query: Vec<String> = asked.map(|(name, value)| format!("{name}={}", segment(value))).collect();
    let path = format!("/peers?{}", query.join("&"));
    let found: PeerList = client.call(Call::get(&path)).map_err(|error| Failed::to("list peers", &error))?;
    if list.json {
        say(format_args!("{}", serde_json::to_string(&found)?));
        return Ok(());
    }
    say(format_args!("{}", table(&found.peers)));
    if let Some(next) = &found.next_cursor {
        eprintln!("longhaul: there may be more; go on with --cursor {next}");
    }
    Ok(())
}

fn show(answer: &PeerAnswer, json: bool) -> Result<()> {
    if json {
        say(format_args!("{}", serde_json::to_string(answer)?));
    } else {
        say(format_args!("{}", table(std::slice::from_ref(&answer.peer))));
    }
    Ok(())
}

fn table(peers: &[api::Peer]) -> String {
    let mut table = Table::new(&["ID", "Name", "Circle", "Presence", "Last heard", "Labels", "Capabilities"]);
    for peer in peers {
        table.row(&[
            &peer.peer_id,
            &peer.display_name,
            peer.circle.as_deref().unwrap_or_default(),
            &peer.presence,
            &peer.seen_at,
            &peer.labels.join(","),
            &peer.capabilities.join(","),
        ]);
    }
    table.text()
}
