//! `longhaul token`: access tokens, over HTTP and effective at once.

use std::process::ExitCode;

use anyhow::Result;
use api::{CreateToken, Role, TokenCreated, TokenList, TokenRevoked};
use clap::{Args, Subcommand};

use crate::client::{Call, Connection, segment};
use crate::exit::Failed;
use crate::show::{Table, say};

const EXAMPLES: &str = "Examples:
  longhaul token create --name 'the build' --role operator --scope exec
  longhaul token create --name 'reviewer' --role peer --circle blue --peer reviewer
  longhaul token list
  longhaul token revoke token-0123

Roles: admin (everything), operator (everything but tokens), peer and agent (work of their circle), viewer (only reads).
The scope exec lets a token run commands. A token with a circle sees that circle alone.";

/// Make, list and revoke access tokens
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct TokenArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make a token; its secret is printed once and never again
    #[command(after_help = EXAMPLES)]
    Create(Create),
    /// All tokens, without their secrets
    #[command(after_help = EXAMPLES)]
    List {
        /// Print JSON for machines
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token: its next request is refused
    #[command(after_help = EXAMPLES)]
    Revoke {
        /// The token's id
        #[arg(value_name = "ID")]
        id: String,
    },
}

#[derive(Args)]
struct Create {
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
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: TokenArguments) -> Result<ExitCode> {
    let client = arguments.connection.client()?;
    match arguments.verb {
        Verb::Create(create) => {
            let json = create.json;
            let sent = CreateToken {
                name: create.name,
                role: create.role,
                scopes: create.scopes,
                circle: create.circle,
                peer_id: create.peer,
            };
            let created: TokenCreated = client
                .call(Call::post("/tokens", &sent))
                .map_err(|error| Failed::to("create token", &error))?;
            if json {
                say(format_args!("{}", serde_json::to_string(&created)?));
            } else {
                say(format_args!("{}", created.secret));
                eprintln!(
                    "longhaul: {} ({}); the secret is not shown again",
                    created.token.id, created.token.role
                );
            }
        }
        Verb::List { json } => {
            let list: TokenList =
                client.call(Call::get("/tokens")).map_err(|error| Failed::to("list token", &error))?;
            if json {
                say(format_args!("{}", serde_json::to_string(&list)?));
            } else {
                say(format_args!("{}", table(&list)));
            }
        }
        Verb::Revoke { id } => {
            let path = format!("/tokens/{}", segment(&id));
            let revoked: TokenRevoked =
                client.call(Call::delete(&path)).map_err(|error| Failed::to("revoke token", &error))?;
            say(format_args!("Revoked token {}", revoked.id));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(list: &TokenList) -> String {
    let mut table = Table::new(&["ID", "Role", "Scopes", "Circle", "Peer", "Name", "Created", "Revoked"]);
    for token in &list.tokens {
        let or_nothing = |text: &Option<String>| text.clone().unwrap_or_default();
        table.row(&[
            &token.id,
            &token.role,
            &token.scopes.join(","),
            &or_nothing(&token.circle),
            &or_nothing(&token.peer_id),
            &token.name,
            &token.created_at,
            &or_nothing(&token.revoked_at),
        ]);
    }
    table.text()
}

fn role(word: &str) -> Result<Role, String> {
    let all: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    Role::parse(word).ok_or_else(|| format!("one of {}", all.join(", ")))
}
