//! `slow-service [work|redaction|delivery] [--listen ADDRESS] [--state FILE] [--speed N] [--directory DIR]`: for hand use.
//!
//! Says where it listens on its first line of output and stays until it is interrupted.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use slow_service::{
    Adapter, DeliveryOptions, DeliveryService, DirectoryAdapter, Options, RedactionOptions, RedactionService,
    ServiceError, SlowService,
};

const USAGE: &str = "usage: slow-service [work|redaction|delivery] [--listen ADDRESS] [--state FILE] \
                     [--speed N (work)] [--directory DIR (delivery: the target and route \"directory\")]";

struct Arguments {
    kind: String,
    listen: SocketAddr,
    state: Option<PathBuf>,
    speed: f64,
    directory: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match serve(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut words = words.peekable();
    let kind = words.next_if(|word| !word.starts_with("--")).unwrap_or_else(|| "work".to_owned());
    if !["work", "redaction", "delivery"].contains(&kind.as_str()) {
        return Err(format!("there is no service {kind}"));
    }
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut arguments =
        Arguments { kind, listen, state: None, speed: 1.0, directory: PathBuf::from("delivered") };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--listen" => {
                arguments.listen = value.parse().map_err(|_| format!("{value} is not an address"))?;
            }
            "--state" => arguments.state = Some(PathBuf::from(value)),
            "--speed" => arguments.speed = value.parse().map_err(|_| format!("{value} is not a number"))?,
            "--directory" => arguments.directory = PathBuf::from(value),
            other => return Err(format!("unknown argument {other}")),
        }
    }
    Ok(arguments)
}

async fn serve(arguments: Arguments) -> Result<(), ServiceError> {
    let Arguments { kind, listen, state, speed, directory } = arguments;
    match kind.as_str() {
        "redaction" => {
            let options = RedactionOptions { listen, state, ..RedactionOptions::default() };
            let service = RedactionService::start(options).await?;
            stay(&service.url()).await?;
            service.stop().await;
        }
        "delivery" => {
            let target = Arc::new(DirectoryAdapter::new(directory)) as Arc<dyn Adapter>;
            let adapters = BTreeMap::from([("directory".to_owned(), target)]);
            let stage = json!({"stage/id": "only", "targets": ["directory"], "success/policy": "all"});
            let routes = BTreeMap::from([("directory".to_owned(), json!([stage]))]);
            let options = DeliveryOptions { listen, state, adapters, routes, ..DeliveryOptions::default() };
            let service = DeliveryService::start(options).await?;
            stay(&service.url()).await?;
            service.stop().await;
        }
        _ => {
            let service = SlowService::start(Options { listen, state, speed, ..Options::default() }).await?;
            stay(&service.url()).await?;
            service.stop().await;
        }
    }
    Ok(())
}

async fn stay(url: &str) -> Result<(), ServiceError> {
    println!("listening on {url}");
    Ok(tokio::signal::ctrl_c().await?)
}
