//! The daemon: the store, the engine's workers, the executors and the server wired together, from the first line to the last.
//!
//! Nothing is dispatched before what earlier daemons left running is ended, and with it their leases. The readiness line is
//! printed when requests are answered, not before.

mod descriptors;
mod files;
mod full_disk;
mod node;
mod plugins;
mod removals;
mod sandbox;
mod signals;
mod whose;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use domain::policy::JobLife;
use domain::{Digest, OperationId, Timestamp};
use engine::{
    Clock, Daemon, DaemonSettings, Dispatching, Executor, Executors, Ids, Modes, RandomIds, Specialist,
    SystemClock, Timer,
};
use executors::Workspaces;
use executors::backend::{AttemptTokens, Backend};
use executors::http::{CallbackUrls, HttpConnector};
use executors::process::{Artifacts, ProcessExecutor, ProcessHost, sweep_leftovers};
use pipelines::Router;
use pipelines::Routes;
use server::{CallbackKey, CallbackTarget, Server, ServerLimits, ServerSettings};
use store::StoreError;
use store_sql::{FileLock, OpenError, PostgresAddress, PostgresLedger, PostgresStore, STORE_ID_KEY};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::builtin;
use crate::client::DaemonFile;
use crate::config::{Among, Config, Kind, OpenedConnector, SandboxWord};
use crate::database::{DatabaseArgument, OUTPUT_DIR, Opened, Place, STORE_FILE};
use crate::log::say;
pub use descriptors::make_room;
pub use files::{kept_callback_key, make_data_dir, write_callback_key};
use signals::Signals;
pub use whose::{check_for_file, check_for_restore};

/// How claims of daemons are named; peers have other names.
const OWNER: &str = "daemon";
/// How long an executor that this daemon does not have may take to come.
const GRACE_SECONDS: u64 = 10;
/// What another node has revoked counts here after this long.
const REVOKED_WITHIN: Duration = Duration::from_millis(500);
/// How long requests that are under way may take when the daemon stops.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Connections that wait to be taken in.
const COMING_AT_ONCE: u32 = 4_096;

/// What a daemon is started with.
pub struct DaemonOptions {
    pub data_dir: PathBuf,
    /// Another place for the store than the data directory.
    pub database: DatabaseArgument,
    /// Overrides the configuration.
    pub listen: Option<SocketAddr>,
    pub config: Config,
    /// Whether a store that is damaged or has lost commits is opened.
    pub accept_loss: bool,
    /// Overrides the configuration.
    pub sandbox: Option<SandboxWord>,
    pub dispatching: Dispatching,
}

/// The key that all who are called back share.
pub const CALLBACK_KEY: &str = "callback";
/// Where a daemon listens if nothing is said.
const DEFAULT_LISTEN: &str = "127.0.0.1:7420";

/// A daemon that answers requests.
pub struct Running {
    pub url: String,
    data_dir: PathBuf,
    store: Opened,
    _lock: Option<FileLock>,
    daemon: Arc<Daemon>,
    signals: Signals,
    stop_serving: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Running {
    /// Starts everything.
    pub async fn start(mut options: DaemonOptions) -> Result<Self> {
        // Before there is a secret in memory or a descriptor of one.
        executors::process::hide_from_tracers().context("this process cannot be hidden from tracers")?;
        // Before anything is written: a signal from now on is a graceful stop.
        let signals = Signals::listen()?;
        // A daemon that cannot serve leaves nothing behind.
        let listener = listen(options.listen.or(options.config.listen), &options.data_dir)?;
        let data_dir = files::make_data_dir(&options.data_dir)?;
        let place = options.database.place(&data_dir)?;
        // A file takes its lock by itself, and its data directory is one node for ever.
        let (owner, lock) = match &place {
            Place::File(_) => {
                match whose::check_for_file(&data_dir) {
                    // It is opened as an empty store; where output is left of it, that is refused below.
                    Err(OpenError::Damaged { .. }) if options.accept_loss => {}
                    checked => checked?,
                }
                (OWNER.to_owned(), None)
            }
            Place::Server(address) => {
                let lock = FileLock::acquire(&data_dir.join(STORE_FILE))?;
                whose::check_for_database(&data_dir)?;
                check_there_is_a_store(address, &data_dir).await?;
                (format!("{OWNER}-{}", files::node_id(&data_dir)?), Some(lock))
            }
        };
        let accepted_at =
            options.accept_loss.then(|| SystemClock::starting_at(Timestamp::from_micros(0)).now());
        let opened = Opened::open(&place, options.config.durability, accepted_at).await?;
        let store = opened.store();
        // Before anything that is there is touched.
        claim(&opened, &data_dir).await?;
        let callback_key = CallbackKey::from_bytes(callback_key(&opened, &data_dir).await?);
        let adopt_after = options.config.adopt_after_seconds();
        let (clock, standing, alone) = node::clock_on(&opened, adopt_after).await?;
        let ended = sweep_leftovers(&data_dir);
        if ended > 0 {
            say!("longhaul: ended {ended} processes that an earlier daemon had left");
        }
        // The lock proves that every earlier daemon of this file, or of this data directory, is dead: their leases need not be
        // waited for.
        match store.end_leases_of(&format!("{owner}-"), clock.now()).await {
            // They end by themselves in time.
            Err(StoreError::Full) => {
                tracing::warn!("the disk is full: leases of earlier daemons run on to their end");
            }
            ended => ended?,
        }
        let artifacts = Arc::new(opened.share(Artifacts::in_dir(data_dir.join(OUTPUT_DIR))?));
        let policy = options.config.policy();
        let here = options.config.public_url();
        let here = here.map_or_else(|| listener.local_addr().map(|at| format!("http://{at}")), Ok)?;
        let tokens: Arc<dyn AttemptTokens> = Arc::new(callback_key.clone());
        let host = sandbox::host(&data_dir, &artifacts, &options)?;
        let mut executors = executors(&host, &options.config, &artifacts, &here, &tokens)?;
        let workspaces = workspaces(&data_dir, &owner, &options.config, &opened)?;
        executors.watched_by(workspaces.clone());
        plugins::register(&mut executors, &options.config, &host, &clock, &store, &workspaces);
        if let Some(told) = options.config.without_callbacks() {
            tracing::warn!("{told}");
        }
        for OpenedConnector { circle, connector } in std::mem::take(&mut options.config.opened) {
            let name = connector.name().to_owned();
            let callbacks = options.config.public_url().map(|base| -> Arc<dyn CallbackUrls> {
                // As long as the longest of its work may live.
                let seconds = policy.for_job(circle.as_deref(), &name, JobLife::Bounded).0.max_ttl_seconds;
                let target = CallbackTarget { executor: name.clone(), circle: circle.clone() };
                Arc::new(Callbacks { key: callback_key.clone(), base, target, seconds, clock: clock.clone() })
            });
            let opened =
                HttpConnector::open(connector, vec![listener.local_addr()?], clock.clone(), callbacks)
                    .with_context(|| format!("the connector {name:?} cannot be opened"))?;
            let contract = opened.contract();
            executors.register_under(circle.as_deref(), &name, opened.executor(), contract);
        }
        let routes = Routes::new(pipelines::load(&options.config.pipelines).pipelines)
            .leaving_to_claimants(options.config.left_to_claimants());
        let router = Arc::new(Router::new(executors.clone(), routes));
        let settings = DaemonSettings {
            preparation: Some(router.clone()),
            owner: RandomIds.owner_id(&owner),
            lease: options.config.lease(),
            retention: options.config.retention(),
            lane_limits: options.config.lane_limits(),
            policy,
            grace_seconds: GRACE_SECONDS,
            dispatching: options.dispatching,
            standing,
        };
        let now = clock.now();
        let daemon = Arc::new(Daemon::start(store.clone(), clock, Arc::new(RandomIds), executors, settings));
        if let Some(clock) = alone {
            daemon.keep_time(clock);
        }
        tokio::spawn(removals::remove_artifacts(store.clone(), artifacts.clone()));
        tokio::spawn(removals::remove_workspaces(Arc::downgrade(&store), Arc::downgrade(&workspaces)));
        files::keep_admin_token(daemon.engine(), &data_dir).await?;
        let url = format!("http://{}", listener.local_addr()?);
        node::join(&opened, &daemon, &url, now).await?;
        let tokens_remembered_for = match &opened {
            Opened::File(_) => None,
            Opened::Server(_) => Some(REVOKED_WITHIN),
        };
        let connections = descriptors::connections(options.config.connections());
        let limits = ServerLimits { connections, ..ServerLimits::default() };
        let settings = ServerSettings { tokens_remembered_for, limits, ..ServerSettings::default() };
        let server = Server::new(daemon.clone(), router, settings)
            .with_artifacts(artifacts.clone())
            .with_plugins(Arc::new(options.config.loaded_plugins.plugins.clone()))
            .with_webhooks(std::mem::take(&mut options.config.opened_webhooks))
            .with_callbacks(callback_key)
            .with_host_warning(full_disk::warning_of(&data_dir));
        let files = options.config.pipelines.clone();
        let server =
            if files.is_empty() { server } else { server.with_pipelines(move || pipelines::load(&files)) };
        let (stop_serving, stopped) = oneshot::channel();
        // The sender is kept until the end of the process.
        let until = async { stopped.await.unwrap_or_default() };
        let served = tokio::spawn(server::serve(listener, Arc::new(server), until));
        let (dir, file) = (data_dir.clone(), DaemonFile { url: url.clone(), pid: std::process::id() });
        let write = move || std::future::ready(files::write_daemon_file(&dir, &file));
        full_disk::now_or_later("daemon.json", write).await?;
        Ok(Self { url, data_dir, store: opened, _lock: lock, daemon, signals, stop_serving, served })
    }

    /// Runs until a signal or until the store stops, and says with which code the process ends.
    pub async fn until_told(mut self) -> Result<ExitCode> {
        tokio::select! {
            signal = self.signals.next() => {
                say!("longhaul: {signal}: stopping; what runs has ten seconds, a second signal ends it at once");
            }
            reason = self.store.stopped() => {
                say!("longhaul: the store has stopped, and nothing can be written down any more: {reason}");
                files::remove_daemon_file(&self.data_dir);
                return Ok(ExitCode::FAILURE);
            }
            ended = &mut self.served => {
                files::remove_daemon_file(&self.data_dir);
                ended.context("the server has ended")?.context("the server has ended")?;
                return Ok(ExitCode::FAILURE);
            }
        }
        let (daemon, stop_serving, served) = (self.daemon, self.stop_serving, self.served);
        let drained = async move {
            let _ = stop_serving.send(());
            daemon.stop().await;
            let _ = tokio::time::timeout(ANSWER_WITHIN, served).await;
            node::leave(daemon.engine().store(), daemon.node_id()).await;
        };
        tokio::select! {
            () = drained => {}
            signal = self.signals.next() => {
                say!("longhaul: {signal} again: ending at once");
                files::remove_daemon_file(&self.data_dir);
                return Ok(ExitCode::FAILURE);
            }
            reason = self.store.stopped() => {
                say!("longhaul: the store has stopped: {reason}");
                return Ok(ExitCode::FAILURE);
            }
        }
        files::remove_daemon_file(&self.data_dir);
        say!("longhaul: stopped");
        Ok(ExitCode::SUCCESS)
    }
}

/// Where services call back: as long as work of their kind may live.
struct Callbacks {
    key: CallbackKey,
    base: String,
    target: CallbackTarget,
    seconds: u64,
    clock: Arc<dyn Timer>,
}

impl CallbackUrls for Callbacks {
    fn url_for(&self, operation: &OperationId) -> Option<String> {
        let expires_at = self.clock.now().plus_seconds(self.seconds);
        Some(self.key.url_for(&self.base, &self.target, operation, expires_at))
    }
}

/// Refuses to make a store where the directory is that of one that must be there already.
async fn check_there_is_a_store(address: &PostgresAddress, data_dir: &Path) -> Result<()> {
    let Some(refusal) = whose::refusal_of_an_empty_database(data_dir)? else { return Ok(()) };
    match PostgresLedger::open(address).await {
        Err(OpenError::NoStore { .. }) => Err(refusal.into()),
        // Whatever else is wrong is told by whoever opens it for good.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Makes the directory this store's, if it is not another's.
async fn claim(opened: &Opened, data_dir: &Path) -> Result<()> {
    match opened {
        // Again, now that no daemon of a database can come any more.
        Opened::File(store) => {
            whose::check_no_database(data_dir)?;
            if whose::is_unused(store.newest_fact()) {
                // Its log may have been there and not readable.
                whose::check_no_output(data_dir)?;
            }
            Ok(())
        }
        Opened::Server(store) => {
            let id = Digest(shared_key(store, STORE_ID_KEY).await?);
            let key = shared_key(store, CALLBACK_KEY).await?;
            whose::claim_for_database(data_dir, id, key, store.newest_fact())
        }
    }
}

/// The key that callback addresses are signed with. Nodes that share a store share it: any of them may be called back.
async fn callback_key(opened: &Opened, data_dir: &Path) -> Result<[u8; 32]> {
    match opened {
        Opened::File(_) => {
            files::kept_callback_key(data_dir)?.map_or_else(|| files::make_callback_key(data_dir), Ok)
        }
        Opened::Server(store) => shared_key(store, CALLBACK_KEY).await,
    }
}

async fn shared_key(store: &PostgresStore, name: &str) -> Result<[u8; 32]> {
    let shared = store.shared_key(name, &files::new_key()?).await?;
    shared.try_into().ok().with_context(|| format!("the database holds no key {name:?} of 32 bytes"))
}

fn listen(address: Option<SocketAddr>, data_dir: &Path) -> Result<TcpListener> {
    let default = || DEFAULT_LISTEN.parse().expect("the default is an address");
    let address = address.unwrap_or_else(default);
    if !address.ip().is_loopback() {
        say!(
            "longhaul: {address} can be reached from outside, and there is no encryption; put a proxy with TLS in front"
        );
    }
    bound(address).with_context(|| {
        let told = format!(
            "cannot listen on {address}; choose another with --listen, port 0 takes any that is free"
        );
        match DaemonFile::read(data_dir) {
            Ok(daemon) => format!(
                "{told} ({} says that process {} serves this data at {})",
                DaemonFile::path(data_dir).display(),
                daemon.pid,
                daemon.url
            ),
            Err(_) => told,
        }
    })
}

/// Many may come at the same moment: the system keeps them until they are taken in, or as many of them as it was set to.
fn bound(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(COMING_AT_ONCE)
}

fn executors(
    host: &Arc<ProcessHost>,
    config: &Config,
    artifacts: &Arc<Artifacts>,
    here: &str,
    tokens: &Arc<dyn AttemptTokens>,
) -> Result<Executors> {
    let confinement = config.confinement();
    let mut executors = Executors::default();
    builtin::register(&mut executors, host, &std::env::current_dir()?, confinement.clone());
    for executor in &config.executors {
        let executor = &executor.value;
        let specialist: Arc<dyn Specialist> = match executor.kind {
            Kind::Process => {
                let settings = executor.confined_settings(&confinement);
                Arc::new(ProcessExecutor::new(host.clone(), settings))
            }
            Kind::Backend => {
                let (here, tokens) = (here.to_owned(), tokens.clone());
                Arc::new(Backend::new(host.clone(), executor.backend(&confinement), here, tokens))
            }
        };
        let (concurrency, retry, modes) = (executor.concurrency(), executor.retry(), Modes::default());
        let registered = Executor { specialist, concurrency, retry, modes };
        executors.register_for(executor.circle.as_deref(), &executor.name, registered);
    }
    executors.watched_by(artifacts.clone());
    Ok(executors)
}

/// Opens them. Nothing of an earlier daemon of this node runs any more: what its attempts worked with goes.
fn workspaces(data_dir: &Path, node: &str, config: &Config, opened: &Opened) -> Result<Arc<Workspaces>> {
    let among = match opened {
        Opened::File(_) => Among::Alone,
        Opened::Server(_) => Among::Others,
    };
    let dir = data_dir.join("workspaces");
    let workspaces = Workspaces::in_dir(&dir, node, config.workspaces.settings(among))
        .with_context(|| format!("cannot make the workspaces in {}", dir.display()))?;
    workspaces.sweep_open().with_context(|| format!("cannot look into {}", dir.display()))?;
    Ok(Arc::new(workspaces))
}
