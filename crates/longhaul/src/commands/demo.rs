//! `longhaul demo`: a daemon with work to look at, and what to try next.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use api::{CreateJob, JobCreated, JobList};
use clap::Args;
use engine::Dispatching;
use executors::http::Connector;
use slow_service::{Options, SlowService};

use super::jobs::follow_on_a_line;
use crate::client::{Call, Client, Connection, DaemonFile, ENDS};
use crate::config::Config;
use crate::daemon::{DaemonOptions, Running};
use crate::database::DatabaseArgument;
use crate::show::{self, Live, Table, say_if_read};

const EXAMPLES: &str = "Examples:
  longhaul demo                            on a fresh data directory, on any port that is free
  longhaul demo --data-dir ./demo-data     kill -9 it, start it again like this: the jobs finish

Starts a daemon and a slow HTTP service, gives the service a few jobs through the daemon, which asks it how they go until \
they are done, shows one of them moving, prints what to try next, and stays up until Ctrl-C.";

/// The executor that leads to the slow service.
const SERVICE: &str = "slow-service";
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

/// Where the address of the service is remembered; that of the demo is too, so that the lines that were printed work after a restart.
const SERVICE_ADDRESS_FILE: &str = "slow-service.address";
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub fn run(demo: &Demo) -> Result<ExitCode> {
    let new_dir = || std::env::temp_dir().join(format!("longhaul-demo-{}", std::process::id()));
    let data_dir = demo.data_dir.clone().unwrap_or_else(new_dir);
    super::with_workers(async {
        std::fs::create_dir_all(&data_dir)?;
        // As long as the process lives; what it has accepted is on disk, like everything here.
        let service = slow_service(&data_dir).await?;
        let mut config = Config::default();
        config.connect(None, connector_of(&service)?).map_err(|told| anyhow!(told))?;
        let options = DaemonOptions {
            data_dir: data_dir.clone(),
            database: DatabaseArgument::default(),
            listen: Some(demo.listen.unwrap_or_else(|| last_address(&DaemonFile::demo_path(&data_dir)))),
            config,
            accept_loss: false,
            sandbox: None,
            dispatching: Dispatching::On,
        };
        let running = Running::start(options).await?;
        say_if_read(format_args!("longhaul is ready at {}", running.url));
        if let Some(address) = running.url.strip_prefix("http://") {
            std::fs::write(DaemonFile::demo_path(&data_dir), address)?;
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

/// The outside world of the demo: a service that takes its time.
async fn slow_service(data_dir: &Path) -> Result<SlowService> {
    let state = Some(data_dir.join("slow-service.state"));
    // What was left there is only asked about where it was left.
    let listen = last_address(&data_dir.join(SERVICE_ADDRESS_FILE));
    let service = SlowService::start(Options { listen, state, ..Options::default() }).await?;
    std::fs::write(data_dir.join(SERVICE_ADDRESS_FILE), address_of(&service)?)?;
    Ok(service)
}

fn address_of(service: &SlowService) -> Result<String> {
    let url = service.url();
    Ok(url.strip_prefix("http://").context("the service speaks plain HTTP")?.to_owned())
}

/// The recipe for that service, for the address that it has now.
fn connector_of(service: &SlowService) -> Result<Connector> {
    let text = include_str!("../../../../examples/connectors/slow-service.yaml");
    let text = text.replace("127.0.0.1:8099", &address_of(service)?);
    Ok(Connector::parse("slow-service.yaml", &text)?)
}

/// Where it was the last time, if that is still free.
fn last_address(file: &Path) -> SocketAddr {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let last = text.trim().parse().ok().filter(|address| TcpListener::bind(address).is_ok());
    last.unwrap_or(ANY)
}

fn guide(data_dir: &Path) -> Result<()> {
    let connection = Connection { url: None, token: None, data_dir: data_dir.to_owned() };
    let client = connection.client()?;
    let open = open_jobs(&client)?;
    if let Some(count) = NonZero::new(open.len()) {
        say_if_read(format_args!("\n{} from before the restart.", jobs_go_on(count)));
    }
    let first = submit(&client)?;
    let followed = open.into_iter().next().unwrap_or(first);
    print_hints(data_dir, &followed)?;
    let status = follow_on_a_line(&connection, &followed, None, Live::or_lines())?;
    say_if_read(show::job("Job", &status));
    say_if_read("\nStill up. Ctrl-C stops it.");
    Ok(())
}

fn jobs_go_on(count: NonZero<usize>) -> String {
    if count.get() == 1 { "1 job goes on".to_owned() } else { format!("{count} jobs go on") }
}

/// The jobs that are not over, oldest change first.
fn open_jobs(client: &Client) -> Result<Vec<String>> {
    let list: JobList<'static> = client.call(Call::get("/jobs?view=summary&limit=1000"))?;
    let open = list.work.iter().rev().filter(|job| !ENDS.contains(&&*job.state));
    Ok(open.map(|job| job.job_id.to_string()).collect())
}

/// Gives the daemon its work under names of its own: a data directory has each of it once, however often the demo is started, and
/// wherever it was killed. The id of the first job.
fn submit(client: &Client) -> Result<String> {
    let mut table = Table::new(&["ID", "Title"]);
    let mut first = None;
    for (title, seconds) in JOBS {
        let input = serde_json::json!({ "seconds": seconds, "steps": 10, "result": { "title": title } });
        // A demo that asks for something else under the same title asks for other work.
        let key = format!("demo: {title}: {input}");
        let input = serde_json::value::to_raw_value(&input)?;
        let job = CreateJob {
            executor: Some(SERVICE.to_owned()),
            source_kind: Some("demo".to_owned()),
            input: Some(input),
            ..CreateJob::titled(title)
        };
        let call = Call { idempotency_key: Some(&key), ..Call::post("/jobs", &job) };
        let created: JobCreated<'static> = client.call(call)?;
        table.row(&[&created.job_id, title]);
        first = first.or(Some(created.job_id.to_string()));
    }
    say_if_read(format_args!("\nAccepted, and on disk already:\n\n{table}"));
    first.context("there is at least one job")
}

fn print_hints(data_dir: &Path, id: &str) -> Result<()> {
    let daemon = DaemonFile::read(data_dir)?;
    let token = DaemonFile::token_path(data_dir);
    let program = std::env::current_exe()?;
    let (url, pid, dir, token, program) =
        (&daemon.url, daemon.pid, data_dir.display(), token.display(), program.display());
    say_if_read(format_args!(
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
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_job_goes_on_and_two_jobs_go_on() {
        let told = |count| NonZero::new(count).map(jobs_go_on);
        assert_eq!(told(1).as_deref(), Some("1 job goes on"));
        assert_eq!(told(2).as_deref(), Some("2 jobs go on"));
    }
}
