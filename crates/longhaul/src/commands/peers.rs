//! `longhaul peers`: those who pull work: who is registered, who is there, and what each says of itself.

use anyhow::Result;
use api::{Peer, PeerAnswer, PeerForgotten, PeerList, RegisterPeer};
use clap::{Args, Subcommand};

use crate::client::{Call, Client, query, segment};
use crate::show::{PageArgs, PrintArgs, Table, say};

const EXAMPLES: &str = "Examples:
  longhaul peers list                                      who is registered, and who is there
  longhaul peers list --circle blue --name reviewer
  longhaul peers show peer-blue-0123abcd
  longhaul peers register --id reviewer-1 --name reviewer --circle blue --label rust
  longhaul peers forget reviewer-1                         its jobs stay as they are

A job is assigned to a peer by its id, or by a name that only one peer of the circle has. A peer is present while it waits for \
work and for 90 seconds after it was heard of; an absent one may live all the same.";

/// See, register and forget those who pull work
#[derive(Subcommand)]
#[command(after_help = EXAMPLES, mut_subcommands = |verb| verb.after_help(EXAMPLES))]
pub enum Verb {
    /// Who is registered, and who is there
    List(List),
    /// One peer
    Show {
        #[command(flatten)]
        peer: Named,
        #[command(flatten)]
        print: PrintArgs,
    },
    /// Register a peer, or say anew what it is
    Register(Register),
    /// Forget a peer; its jobs stay as they are
    Forget(Named),
}

#[derive(Args)]
pub struct Named {
    /// The peer
    id: String,
    /// Its circle, where several have a peer with this id; "" for no circle
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
}

#[derive(Args)]
pub struct List {
    /// Only of this circle
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    /// Only those that are called so
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only with this label
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Args)]
pub struct Register {
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
    #[command(flatten)]
    print: PrintArgs,
}

pub fn run(client: &Client, verb: Verb) -> Result<()> {
    match verb {
        Verb::List(List { circle, name, label, page }) => {
            let asked =
                [("circle", &circle), ("display_name", &name), ("label", &label), ("cursor", &page.cursor)];
            let path = format!("/peers?{}", query(&asked));
            let found: PeerList = client.ask("list peers", Call::get(&path))?;
            page.print(&found, found.next_cursor.as_deref(), |found| table(&found.peers))
        }
        Verb::Show { peer, print } => {
            let answer: PeerAnswer = client.ask("show peer", Call::get(&peer.path()))?;
            print.print(&answer, |answer| table(std::slice::from_ref(&answer.peer)))
        }
        Verb::Register(Register { id, name, circle, labels, capabilities, path, backend, print }) => {
            let sent = RegisterPeer {
                peer_id: id,
                display_name: name,
                circle,
                labels,
                capabilities,
                path,
                backend,
                metadata: None,
            };
            let answer: PeerAnswer = client.ask("register peer", Call::post("/peers", &sent))?;
            print.print(&answer, |answer| table(std::slice::from_ref(&answer.peer)))
        }
        Verb::Forget(peer) => {
            let forgotten: PeerForgotten = client.ask("forget peer", Call::bare("DELETE", &peer.path()))?;
            say(format_args!("Forgot peer {}", forgotten.peer_id));
            Ok(())
        }
    }
}

impl Named {
    fn path(&self) -> String {
        let circle = self.circle.as_deref().map(|circle| format!("?circle={}", segment(circle)));
        format!("/peers/{}{}", segment(&self.id), circle.unwrap_or_default())
    }
}

fn table(peers: &[Peer]) -> Table {
    let mut table = Table::new(&["ID", "Name", "Circle", "Presence", "Last heard", "Labels", "Capabilities"]);
    for peer in peers {
        let Peer { peer_id, display_name, presence, seen_at, .. } = peer;
        let circle = peer.circle.as_deref().unwrap_or_default();
        let (labels, capabilities) = (peer.labels.join(","), peer.capabilities.join(","));
        table.row(&[peer_id, display_name, circle, presence, seen_at, &labels, &capabilities]);
    }
    table
}
