//! What a poll is held against: a process that asks the same service at times like ours and keeps one durable row per answer, with
//! nothing around it. Rows that wait for the disk together share its sync, as ours do.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use engine::{Ids, RandomIds};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::service::ServiceProcess;
use crate::daemon::Place;
use crate::daemon::process::Usage;

/// Asks and keeps: for the bench's own use.
#[derive(Args)]
pub struct BarePolls {
    #[arg(long)]
    service: SocketAddr,
    #[arg(long)]
    polls: u32,
    #[arg(long)]
    seconds: u32,
    #[arg(long)]
    database: PathBuf,
}

/// Nanoseconds on a processor of such a process.
pub fn cost(place: &Place, service: &ServiceProcess, polls: usize, seconds: u32) -> Result<u64> {
    let database = place.fresh("bare")?.join("bare.sqlite");
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bare-polls", "--service", &service.address.to_string(), "--polls", &polls.to_string()]);
    command.args(["--seconds", &seconds.to_string(), "--database"]).arg(database);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    child.wait()?;
    line.trim().parse().with_context(|| format!("the bare client said {line:?}"))
}

struct Row {
    id: u32,
    answer: Bytes,
    kept: oneshot::Sender<()>,
}

/// Does it, and prints what it cost.
pub fn run(arguments: &BarePolls) -> Result<()> {
    let (keep, rows) = mpsc::channel::<Row>();
    let connection = database(&arguments.database)?;
    let writer = std::thread::spawn(move || write(connection, rows));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let before = Usage::of(std::process::id())?.nanoseconds;
    runtime.block_on(polls(arguments, &keep))?;
    println!("{}", Usage::of(std::process::id())?.nanoseconds - before);
    drop(keep);
    writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?
}

async fn polls(arguments: &BarePolls, keep: &mpsc::Sender<Row>) -> Result<()> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let window = Duration::from_secs(u64::from(arguments.seconds));
    let mut tasks = Vec::new();
    for id in 0..arguments.polls {
        let due = window.mul_f64(f64::from(RandomIds.jitter().0) / 65_536.0);
        let uri = format!("http://{}/work/{id}", arguments.service).parse()?;
        let (client, keep) = (client.clone(), keep.clone());
        tasks.push(tokio::spawn(async move {
            tokio::time::sleep(due).await;
            let answer = client.get(uri).await?.into_body().collect().await?.to_bytes();
            let (kept, is_kept) = oneshot::channel();
            keep.send(Row { id, answer, kept })?;
            is_kept.await?;
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

fn database(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch("CREATE TABLE polls (id INTEGER PRIMARY KEY, answer BLOB NOT NULL)")?;
    Ok(connection)
}

fn write(connection: Connection, rows: mpsc::Receiver<Row>) -> Result<()> {
    while let Ok(first) = rows.recv() {
        let batch: Vec<Row> = std::iter::once(first).chain(rows.try_iter()).collect();
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for row in &batch {
            connection
                .prepare_cached("INSERT INTO polls (id, answer) VALUES ($1, $2)")?
                .execute((row.id, &row.answer[..]))?;
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
        for row in batch {
            let _ = row.kept.send(());
        }
    }
    Ok(())
}
