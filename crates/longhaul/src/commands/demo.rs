//! `longhaul demo`: a daemon with work to look at, and what to try next.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use api::{CreateJob, JobCreated, JobList};
use clap::Args;
use engine::Dispatching;

use crate::builtin;
use crate::client::{Call, Client, Connection, DaemonFile, ENDS, Followed, follow};
use crate::config::Config;
use crate::daemon::{DaemonOptions, Running};
use crate::show::{self, Live, Table};

const EXAMPLES: &str = "Examples:
  longhaul demo                            on a fresh data directory, on any port that is free
  longhaul demo --data-dir ./demo-data     kill it with -9 and start it again like this: the job finishes

Starts a daemon, gives it a few jobs for the built-in executor `slow`, shows one of them moving, prints what to try
next, and stays up until Ctrl-C.";

/// How many jobs there are to look at, and how long they take.
const JOBS: [(&str, u64); 3] = [("translate a book", 25), ("render a film", 30), ("wait for a print", 20)];

/// Start a daemon with work to look at
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Demo {
    /// Where everything is kept; a new temporary directory if left out
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where to listen; if left out, a free port that is kept for the next time
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
}

/// Where the address of a demo is remembered, so that the lines that were printed work after a restart.
const ADDRESS_FILE: &str = "demo.address";
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub fn run(demo: &Demo) -> Result<ExitCode> {
    let data_dir = match &demo.data_dir {
        Some(data_dir) => data_dir.clone(),
        None => std::env::temp_dir().join(format!("longhaul-demo-{}", std::process::id())),
    };
    let options = DaemonOptions {
        data_dir: data_dir.clone(),
        listen: Some(demo.listen.unwrap_or_else(|| last_address(&data_dir))),
        config: Config::default(),
        dispatching: Dispatching::On,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let running = Running::start(options).await?;
        println!("longhaul is ready at {}", running.url);
        if let Some(address) = running.url.strip_prefix("http://") {
            std::fs::write(data_dir.join(ADDRESS_FILE), address)?;
        }
        // The guide talks to the daemon over HTTP like anyone else; it may not keep the process from ending.
        std::thread::spawn(move || {
            if let Err(error) = guide(&data_dir) {
                eprintln!("longhaul: {error:#}");
            }
        });
        running.until_told().await
    })
}

/// Where it was the last time, if that is still free.
fn last_address(data_dir: &Path) -> SocketAddr {
    let text = std::fs::read_to_string(data_dir.join(ADDRESS_FILE)).unwrap_or_default();
    let last = text.trim().parse().ok().filter(|address| TcpListener::bind(address).is_ok());
    last.unwrap_or(ANY)
}

fn guide(data_dir: &Path) -> Result<()> {
    let connection = Connection { url: None, token: None, data_dir: data_dir.to_owned() };
    let client = connection.client()?;
    let open = open_jobs(&client)?;
    let followed = match open.first() {
        Some(id) => {
            println!("\n{} jobs were open when this data directory was last used; they go on.", open.len());
            id.clone()
        }
        None => submit(&client)?,
    };
    print_hints(data_dir, &followed)?;
    let mut live = Live::new();
    let end = follow(&connection, &followed, None, &mut |status| {
        live.show(status);
        ControlFlow::Continue(())
    });
    live.clear();
    if let Followed::Over(status) = end? {
        println!("{}", show::job("Job", &status));
        println!("\nStill up. Ctrl-C stops it.");
    }
    Ok(())
}

/// The jobs that are not over, oldest change first.
fn open_jobs(client: &Client) -> Result<Vec<String>> {
    let list: JobList<'static> = client.call(Call::get("/jobs?view=summary&limit=1000"))?;
    let open = list.work.iter().rev().filter(|job| !ENDS.contains(&&*job.state));
    Ok(open.map(|job| job.job_id.to_string()).collect())
}

/// Gives the daemon its work; the id of the first job.
fn submit(client: &Client) -> Result<String> {
    let mut table = Table::new(&["ID", "Title"]);
    let mut first = None;
    for (title, seconds) in JOBS {
        let input = serde_json::value::to_raw_value(&serde_json::json!({ "seconds": seconds }))?;
        let job = CreateJob {
            executor: Some(builtin::SLOW.to_owned()),
            source_kind: Some("demo".to_owned()),
            input: Some(input),
            ..CreateJob::titled(title)
        };
        let created: JobCreated<'static> = client.call(Call::post("/jobs", &job))?;
        table.row(&[&created.job_id, title]);
        first = first.or(Some(created.job_id.to_string()));
    }
    println!("\nAccepted, and on disk already:\n\n{}", table.text());
    first.context("there is at least one job")
}

fn print_hints(data_dir: &Path, id: &str) -> Result<()> {
    let daemon = DaemonFile::read(data_dir)?;
    let token = DaemonFile::token_path(data_dir);
    let program = std::env::current_exe()?;
    let (url, pid, dir, token, program) =
        (&daemon.url, daemon.pid, data_dir.display(), token.display(), program.display());
    println!(
        "
Try, in another terminal:

  create a job      curl -s {url}/jobs -H \"Authorization: Bearer $(cat {token})\" -H 'Content-Type: application/json' -d '{{\"title\": \"by hand\", \"executor\": \"slow\", \"input\": {{\"seconds\": 10}}}}'
  all jobs          {program} jobs list --data-dir {dir}
  why, and facts    {program} jobs why {id} --data-dir {dir}
  any command       {program} run --data-dir {dir} -- sh -c 'echo hello from a durable job'
  what it said      {program} jobs logs --data-dir {dir} ID
  pull the plug     kill -9 {pid}
  and go on         {program} demo --data-dir {dir}
  then check        {program} verify --data-dir {dir}
"
    );
    Ok(())
}
