//! longhaul as a library: the engine on a SQLite file of its own, one executor that leaves its work outside, and no server.
//!
//! `cargo run --release --example embedded -- ./press-data` gives a print to a press that needs a few seconds, and asks it until it is
//! done. Kill it with -9 and start it again: it goes on asking, and the press prints once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use domain::attention::Retention;
use domain::job::{CancelAnswer, JobCommand, JobSpec, JobStateName, NewJob, Resubmit};
use domain::operation::{PollError, PollHints, ReportedStatus};
use domain::policy::{Hint, HostPolicy};
use domain::{JobId, Lease, Record};
use engine::{
    Assignment, CancelReply, Clock, Daemon, DaemonSettings, Deferral, Dispatching, Executor, Executors, Ids,
    Intent, Link, Modes, Order, Output, Outside, Polled, Produced, RandomIds, Specialist, SystemClock,
};
use futures::future::BoxFuture;
use store::{JobQuery, Store, sha256};
use store_sql::{SqliteOptions, SqliteStore};

const OWNER: &str = "embedded";
const PRINTING: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> Result<()> {
    let dir = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("press-data"), PathBuf::from);
    std::fs::create_dir_all(&dir)?;
    let store = Arc::new(SqliteStore::open(&SqliteOptions::at(dir.join("press.sqlite")))?);
    let clock = Arc::new(SystemClock::starting_at(store.newest_fact()));
    // The file is locked by us: whoever had leases before is dead.
    store.end_leases_of(&format!("{OWNER}-"), clock.now()).await?;
    let daemon = start(store.clone(), clock, &dir);
    let id = match open_job(&*store).await? {
        Some(id) => id,
        None => print_something(&daemon).await?,
    };
    let mut watched = daemon.changes().watch(&id.clone().into());
    loop {
        let loaded = store.load(&id.clone().into()).await?.context("it was accepted")?;
        let Record::Job(job) = &*loaded.record else { anyhow::bail!("{id} is no job") };
        println!("{id} is {}", job.state.name());
        if job.state.name().is_terminal() {
            break;
        }
        watched.next().await;
    }
    daemon.stop().await;
    Ok(())
}

fn start(store: Arc<SqliteStore>, clock: Arc<SystemClock>, dir: &Path) -> Daemon {
    let mut executors = Executors::default();
    executors.register(
        "press",
        Executor {
            specialist: Arc::new(Press { dir: dir.to_owned() }),
            concurrency: 4,
            retry: Executors::DEFAULT_RETRY,
            modes: Modes::default(),
        },
    );
    let settings = DaemonSettings {
        preparation: None,
        owner: RandomIds.owner_id(OWNER),
        lease: Lease::DEFAULT,
        retention: Retention::DEFAULT,
        lane_limits: BTreeMap::new(),
        policy: HostPolicy::default(),
        grace_seconds: 0,
        dispatching: Dispatching::On,
        standing: engine::Standing::alone(),
    };
    Daemon::start(store, clock, Arc::new(RandomIds), executors, settings)
}

async fn open_job(store: &dyn Store) -> Result<Option<JobId>> {
    let page = store.jobs(JobQuery { limit: 100, ..JobQuery::default() }).await?;
    let open = page.jobs.iter().filter(|record| !record.is_over());
    Ok(open.filter_map(|record| record.as_job()).map(|job| job.id.clone()).next())
}

async fn print_something(daemon: &Daemon) -> Result<JobId> {
    let id = RandomIds.job_id();
    let mut spec = JobSpec::plain(Some("press"), Executors::DEFAULT_RETRY);
    "print the report".clone_into(&mut spec.title);
    let new = NewJob { spec, due_at: None, bodies: Vec::new() };
    // When this returns, it survives a power cut.
    let create = JobCommand::Create(Box::new(new));
    daemon.engine().execute(Order::new(id.clone(), create, Arc::from("example"))).await?;
    println!("{id} is {}", JobStateName::Queued);
    Ok(id)
}

/// A press that prints by itself: a file per print says when it began.
struct Press {
    dir: PathBuf,
}

impl Press {
    fn sheet(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}.print"))
    }
}

impl Specialist for Press {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("press")
    }

    fn produce(&self, assignment: Assignment, link: Link) -> BoxFuture<'_, Produced> {
        Box::pin(async move {
            // First on the ledger, then at the press: after a crash it is the same print again, never a second one.
            let intent = Intent { request_sha256: sha256(&assignment.input), resubmit: Resubmit::SameKey };
            let Ok(intended) = link.intend(intent).await else { return Produced::Stopped };
            let key = intended.key.as_str();
            match std::fs::File::create_new(self.sheet(key)) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    Produced::Unexpected(format!("a press that is out of order: {error}"))
                }
                Ok(_) | Err(_) => {
                    let handle = key.as_bytes().to_vec();
                    Produced::Deferred(Deferral { retry_after: Hint::Seconds(1), ..Deferral::new(handle) })
                }
            }
        })
    }

    fn poll(&self, outside: Outside) -> BoxFuture<'_, Result<Polled, PollError>> {
        Box::pin(async move {
            let sheet = self.sheet(&String::from_utf8_lossy(&outside.handle));
            let Ok(began) = std::fs::metadata(sheet).and_then(|sheet| sheet.modified()) else {
                return Ok(Polled::Unknown);
            };
            let printed = SystemTime::now().duration_since(began).unwrap_or_default();
            Ok(if printed < PRINTING {
                let progress_hint = Some(format!("{} s at the press", printed.as_secs()));
                Polled::Open(ReportedStatus::Running, PollHints { progress_hint, ..PollHints::default() })
            } else {
                Polled::Completed(Output { data: Some(b"{\"pages\":12}".to_vec()), ..Output::default() })
            })
        })
    }

    fn cancel(&self, outside: Outside) -> BoxFuture<'_, CancelReply> {
        let sheet = self.sheet(&String::from_utf8_lossy(&outside.handle));
        Box::pin(async move {
            match std::fs::remove_file(sheet) {
                Ok(()) => CancelAnswer::Cancelled.into(),
                Err(error) => CancelAnswer::Refused(error.to_string()).into(),
            }
        })
    }
}
