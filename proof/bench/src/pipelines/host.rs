//! The engine's own daemon in this process, with three plugins that do nothing and a pipeline that runs one after the other.
//!
//! In this process, because only so the very same plugin can be started without a job beside it, and the end of a run is heard of without a
//! question. HTTP is measured by `route.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use domain::attention::Retention;
use domain::event::{NewEvent, Origin, Settler};
use domain::job::Job;
use domain::policy::HostPolicy;
use domain::run::{Run, RunState};
use domain::{BodyName, EventId, Lease, OwnerId, Record, RecordId};
use engine::{
    Assignment, Daemon, DaemonSettings, Dispatching, Executors, Link, Produced, RandomIds, Specialist,
    Standing, SystemClock, Timer,
};
use executors::plugin::{Discovered, PluginExecutor, PluginSettings, Plugins, Symlinks};
use executors::process::{Artifacts, ProcessHost};
use executors::{WorkspaceSettings, Workspaces};
use pipelines::{Router, run_id_of};
use pipelines::{Routes, parse};
use store::{MemoryStore, body_ref};
use store_sql::{SqliteOptions, SqliteStore};

use crate::daemon::Place;

/// The type of the event that starts the pipeline.
const EVENT: &str = "tide.changed";
const PIPELINE: &str = "three-steps";
/// Three plugins, as in most pipelines: each has a lane of its own.
pub const STEPS: [&str; 3] = ["first", "second", "third"];
const PAYLOAD: &[u8] = br#"{"station":"north-harbour","level_mm":2140,"measured_at":"2026-01-01T00:00:00Z"}"#;

/// A daemon that runs pipelines of plugins that do nothing.
pub struct Host {
    pub daemon: Arc<Daemon>,
    /// The file of its store.
    pub path: PathBuf,
    store: Arc<SqliteStore>,
    /// The first plugin, on a store in memory: nothing of what it does is durable.
    bare: Arc<dyn Specialist>,
}

impl Host {
    /// With so many jobs of each plugin at once; one at a time, on all nodes, if nothing is said.
    pub fn start(place: &Place, plugin: &Path, name: &str, parallelism: Option<usize>) -> Result<Self> {
        let dir = place.fresh(name)?;
        let path = dir.join("longhaul.sqlite");
        let store = Arc::new(SqliteStore::open(&SqliteOptions::at(&path))?);
        let clock: Arc<dyn Timer> = Arc::new(SystemClock::starting_at(store.newest_fact()));
        let artifacts = Arc::new(Artifacts::in_dir(dir.join("artifacts"))?);
        let host = Arc::new(ProcessHost::new(place.binary.clone(), &dir, artifacts)?);
        let workspaces =
            Arc::new(Workspaces::in_dir(dir.join("workspaces"), "bench", WorkspaceSettings::default())?);
        let plugins = plugins(&dir.join("plugins"), plugin, parallelism)?;
        let mut executors = Executors::default();
        for plugin in plugins.list().filter(|plugin| plugin.is_enabled()) {
            let opened = PluginExecutor::open(
                host.clone(),
                plugin.clone(),
                clock.clone(),
                store.clone(),
                workspaces.clone(),
            )?
            .executor();
            executors.register(&plugin.name, opened);
        }
        let first = plugins.find(STEPS[0]).context("the first plugin is there")?.clone();
        let bare =
            PluginExecutor::open(host, first, clock.clone(), Arc::new(MemoryStore::new()), workspaces)?;
        let _in_runtime = place.runtime.enter();
        let daemon =
            Daemon::start(store.clone(), clock, Arc::new(RandomIds), executors.clone(), settings(executors)?);
        Ok(Self { daemon: Arc::new(daemon), path, store, bare: Arc::new(bare) })
    }

    /// How many transactions of its store were synced so far.
    pub fn synced(&self) -> u64 {
        self.store.figures().synced()
    }

    /// Publishes an event and waits for the end of the run that it starts: durable, as whoever waits over HTTP is told.
    pub async fn run(&self) -> Result<Run> {
        let engine = self.daemon.engine();
        let id = EventId::new(format!("event-{:032x}", engine.ids().next()));
        let mut run = self.daemon.changes().watch(&run_id_of(&id, PIPELINE).into());
        let event = NewEvent {
            kind: EVENT.to_owned(),
            payload: body_ref(BodyName::Payload, PAYLOAD),
            origin: Origin::Published { by: None },
            source: None,
            dedupe_key: None,
            circle: None,
            depth: 0,
            max_depth: None,
            correlation: None,
            settled_by: Settler::Router,
        };
        engine.execute(Router::publishing(&id, event, PAYLOAD.to_vec(), Arc::from("token:bench"))).await?;
        loop {
            let record = run.next().await;
            let Record::Run(run) = &*record else { bail!("{} is no run", record.id()) };
            match run.state() {
                RunState::Running | RunState::Cancelling => {}
                RunState::Completed => return Ok((**run).clone()),
                RunState::Failed | RunState::Cancelled => bail!("the run {} has failed", run.id),
            }
        }
    }

    /// The jobs of a run, in the order of its steps.
    pub async fn jobs_of(&self, run: &Run) -> Result<Vec<Box<Job>>> {
        let mut jobs = Vec::with_capacity(STEPS.len());
        for visit in &run.visits {
            let Some(id) = visit.job_id() else { continue };
            let loaded = self.daemon.engine().store().load(&RecordId::from(id.clone())).await?;
            let Some(Record::Job(job)) = loaded.map(|loaded| (*loaded.record).clone()) else {
                bail!("the job {id} is not there");
            };
            jobs.push(job);
        }
        ensure!(jobs.len() == STEPS.len(), "{} jobs of {} steps", jobs.len(), STEPS.len());
        Ok(jobs)
    }

    /// What the first step of a run is given.
    pub async fn assignment(&self, run: &Run) -> Result<Assignment> {
        let job = self.jobs_of(run).await?.swap_remove(0);
        let input = job.bodies.iter().find(|body| body.name == BodyName::Input);
        let input = *input.context("a step of a plugin has an input")?;
        let bytes = self.daemon.engine().store().body(&job.id.clone().into(), input).await?;
        Ok(Assignment {
            attempt_id: job.last_attempt().context("it was done")?.id.clone(),
            attempt_number: 1,
            input: bytes.context("its input is kept")?,
            prompt: None,
            answers: Vec::new(),
            arrived: None,
            job: Arc::from(job),
        })
    }

    /// Starts the plugin under its supervisor with the same request, and waits for its answer. There is no job.
    pub async fn spawn(&self, assignment: &Assignment) -> Result<()> {
        let (link, _stopper) = Link::unattended();
        let produced = self.bare.produce(assignment.clone(), link).await;
        ensure!(matches!(produced, Produced::Completed(_)), "the plugin came to {produced:?}");
        Ok(())
    }
}

fn settings(executors: Executors) -> Result<DaemonSettings> {
    let steps = STEPS.map(|name| format!("  - {{ id: {name}, uses: {name} }}\n")).concat();
    let loaded = parse(&[(
        "bench.yaml",
        &format!("pipelines:\n- name: {PIPELINE}\n  on: {EVENT}\n  steps:\n{steps}"),
    )]);
    ensure!(loaded.mistakes.is_empty(), "{:?}", loaded.mistakes);
    Ok(DaemonSettings {
        owner: OwnerId::new("node-bench-boot-1"),
        lease: Lease::DEFAULT,
        retention: Retention::DEFAULT,
        lane_limits: BTreeMap::new(),
        policy: HostPolicy::default(),
        grace_seconds: 0,
        dispatching: Dispatching::On,
        standing: Standing::alone(),
        preparation: Some(Arc::new(Router::new(executors, Routes::new(loaded.pipelines)))),
    })
}

/// One plugin under three names.
fn plugins(root: &Path, program: &Path, parallelism: Option<usize>) -> Result<Plugins> {
    let directory = root.join("trivial");
    fs::create_dir_all(&directory)?;
    fs::copy(program, directory.join("run"))?;
    let manifest = "name: trivial\nprotocol: 2\nentrypoint: run\ncommands: [handle]\n";
    fs::write(directory.join("manifest.yaml"), manifest)?;
    let mut discovered = Discovered::default();
    discovered.add_root(root, Symlinks::default()).map_err(|mistake| anyhow::anyhow!("{mistake}"))?;
    let named = STEPS.map(|name| {
        let uses = Some("trivial".to_owned());
        (name.to_owned(), PluginSettings { uses, parallelism, ..PluginSettings::default() })
    });
    let (plugins, left_out) = Plugins::assemble(&discovered, &BTreeMap::from(named));
    ensure!(left_out.is_empty(), "{left_out:?}");
    Ok(plugins)
}
