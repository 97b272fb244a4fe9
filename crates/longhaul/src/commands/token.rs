//! `longhaul token`: access tokens, over HTTP and effective at once.

use anyhow::Result;
use api::{CreateToken, Role, Token, TokenCreated, TokenList, TokenRevoked};
use clap::{Args, Subcommand};

use crate::client::{Call, Client, segment};
use crate::show::{PrintArgs, Table, say};

const EXAMPLES: &str = "Examples:
  longhaul token create --name 'the build' --role operator --scope exec
  longhaul token create --name 'reviewer' --role peer --circle blue --peer reviewer
  longhaul token list
  longhaul token revoke token-0123

Roles: admin (everything), operator (everything but tokens), peer and agent (work of their circle), viewer (only reads).
The scope exec lets a token run commands. A token with a circle sees that circle alone.";

/// Make, list and revoke access tokens
#[derive(Subcommand)]
#[command(after_help = EXAMPLES, mut_subcommands = |verb| verb.after_help(EXAMPLES))]
pub enum Verb {
    /// Make a token; its secret is printed once and never again
    Create(Create),
    /// All tokens, without their secrets
    List(PrintArgs),
    /// Revoke a token: its next request is refused
    Revoke {
        /// The token's id
        id: String,
    },
}

#[derive(Args)]
pub struct Create {
    /// For people
    #[arg(long, default_value = "")]
    name: String,
    /// What it may do
    #[arg(long, value_parser = role)]
    role: Role,
    /// What it may do besides; may be given several times
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// The only circle that it sees; peers and agents must have one
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    /// The peer that it speaks for, in its circle
    #[arg(long, value_name = "PEER")]
    peer: Option<String>,
    #[command(flatten)]
    print: PrintArgs,
}

pub fn run(client: &Client, verb: Verb) -> Result<()> {
    match verb {
        Verb::Create(create) => {
            let Create { name, role, scopes, circle, peer, print } = create;
            let sent = CreateToken { name, role, scopes, circle, peer_id: peer };
            let created: TokenCreated = client.ask("create token", Call::post("/tokens", &sent))?;
            print.print(&created, |created| created.secret.clone())?;
            if !print.json {
                let (id, role) = (&created.token.id, &created.token.role);
                eprintln!("longhaul: {id} ({role}); the secret is not shown again");
            }
        }
        Verb::List(print) => print.print(&client.ask("list token", Call::get("/tokens"))?, table)?,
        Verb::Revoke { id } => {
            let path = format!("/tokens/{}", segment(&id));
            let revoked: TokenRevoked = client.ask("revoke token", Call::bare("DELETE", &path))?;
            say(format_args!("Revoked token {}", revoked.id));
        }
    }
    Ok(())
}

fn table(list: &TokenList) -> Table {
    let mut table = Table::new(&["ID", "Role", "Scopes", "Circle", "Peer", "Name", "Created", "Revoked"]);
    for token in &list.tokens {
        let Token { id, role, name, created_at, .. } = token;
        let or_nothing = |text: &Option<String>| text.clone().unwrap_or_default();
        let (circle, peer) = (or_nothing(&token.circle), or_nothing(&token.peer_id));
        let (scopes, revoked) = (token.scopes.join(","), or_nothing(&token.revoked_at));
        table.row(&[id, role, &scopes, &circle, &peer, name, created_at, &revoked]);
    }
    table
}

fn role(word: &str) -> Result<Role, String> {
    let all: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    Role::parse(word).ok_or_else(|| format!("one of {}", all.join(", ")))
}
