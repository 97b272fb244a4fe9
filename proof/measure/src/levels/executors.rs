//! What runs a job: the built-in no-op, a command, a plugin, and a service that answers at once; each beside the raw database.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::http;
use crate::bench::Measured;
use crate::host::{Host, Over, Unit};
use crate::line::{Bound, Line};
use crate::service::ServiceProcess;
use crate::site::Ground;
use crate::work::{Spread, Work};

/// Who ask at the same time.
const CONNECTIONS: usize = 16;
/// What may run at the same time.
const CONCURRENCY: usize = 16;
/// Operations that are open at the same time.
const MOST_OPEN: usize = 100_000;
/// Starts of the bare program, to see what a start costs here.
const BARE_STARTS: usize = 40;

const MANIFEST: &str = "name: grind\nprotocol: 2\nentrypoint: run\ncommands: [handle]\n";
const PROGRAM: &str = "#!/bin/sh\ncat > /dev/null\necho '{\"status\":\"ok\",\"result\":\"done\"}'\n";

/// One kind of work for each executor.
pub fn measure(ground: &Ground, time: Duration) -> Result<Measured> {
    let piece = time / 4;
    let service = ServiceProcess::start(&ground.binary)?;
    let files = Files::make(ground, &service)?;
    let site = ground.site()?;
    let host = Host::start(site, &["--config".as_ref(), files.config().as_os_str()])?;
    let mut measured = Measured::default();
    let units = [
        Unit { what: "the built-in no-op".to_owned(), ..http::noop() },
        unit("the command `true`", r#""executor":"command","input":{"argv":["true"]}"#),
        unit("a plugin of two lines of shell", r#""executor":"grind","input":{"command":"handle"}"#),
        unit("a service that answers at once", r#""executor":"prompt","input":{"width":1280}"#),
    ];
    for unit in units {
        ground.say(&format!("executors: {}", unit.what));
        measured.works.push(host.work(&unit, piece)?);
    }
    measured.lines = lines(&measured.works, bare_starts(&files)?);
    Ok(measured)
}

/// A job by this executor.
fn unit(what: &str, rest: &str) -> Unit {
    Unit {
        what: what.to_owned(),
        path: "/jobs",
        body: format!(r#"{{"title":"render the cover",{rest}}}"#),
        connections: CONNECTIONS,
        over: Over::Job,
        at_least: Duration::ZERO,
    }
}

/// How long one alone takes, beside what it cannot do without.
fn lines(works: &[Work], bare: Option<Spread>) -> Vec<Line> {
    let Some(bare) = bare else { return Vec::new() };
    let told = works.iter().filter(|work| work.what.contains("plugin"));
    told.filter_map(|work| {
        let alone = work.latency_ms?.spread;
        Some(Line {
            what: format!(
                "{}, from the request to its result, alone, p50; and a bare start of it",
                work.what
            ),
            measured: format!("{:.2} ms", alone.p50),
            against: format!("{:.2} ms", bare.p50),
            figure: alone.p50 / bare.p50,
            bound: Bound::Told,
        })
    })
    .collect()
}

/// The program of the plugin, started by nobody of ours.
fn bare_starts(files: &Files) -> Result<Option<Spread>> {
    let mut each = Vec::new();
    for _ in 0..BARE_STARTS {
        let begin = std::time::Instant::now();
        let mut command = std::process::Command::new(files.dir.join("plugins/grind/run"));
        let output = command.stdin(std::process::Stdio::null()).output()?;
        ensure!(output.status.success(), "the plugin cannot be started");
        each.push(begin.elapsed().as_secs_f64());
    }
    Ok(Spread::of(each))
}

/// What a daemon of the bench is set up with; gone when it is dropped.
pub struct Files {
    dir: PathBuf,
}

impl Files {
    /// With a plugin, pipelines and connectors to this service.
    pub fn make(ground: &Ground, service: &ServiceProcess) -> Result<Self> {
        let files = Self { dir: ground.scratch.join("setup") };
        let plugin = files.dir.join("plugins/grind");
        fs::create_dir_all(&plugin)?;
        fs::write(plugin.join("manifest.yaml"), MANIFEST)?;
        fs::write(plugin.join("run"), PROGRAM)?;
        fs::set_permissions(plugin.join("run"), fs::Permissions::from_mode(0o755))?;
        let address = service.address;
        fs::write(files.dir.join("prompt.yaml"), prompt(address))?;
        fs::write(files.dir.join("deferred.yaml"), deferred(address))?;
        fs::write(files.dir.join("pipelines.yaml"), PIPELINES)?;
        fs::write(
            files.config(),
            format!(
                "connectors: [prompt.yaml, deferred.yaml]\nplugin_roots: [plugins]\npipelines: [pipelines.yaml]\n\
                 plugins: {{ grind: {{ parallelism: {CONCURRENCY} }} }}\n\
                 policy: {{ max_open_total: {MOST_OPEN}, max_concurrent_polls_total: 64 }}\n"
            ),
        )?;
        Ok(files)
    }

    /// The configuration.
    pub fn config(&self) -> PathBuf {
        self.dir.join("longhaul.yaml")
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Three steps that the daemon does itself, one after the other.
const PIPELINES: &str = "pipelines:
- name: three-steps
  on: tide.changed
  steps: [{ id: one, uses: noop }, { id: two, uses: noop }, { id: three, uses: noop }]
";

/// A connector to a service that answers at once.
fn prompt(address: SocketAddr) -> String {
    format!(
        "name: prompt
execution_mode_support: sync-only
allow: ['{address}']
concurrency: {CONCURRENCY}
submit:
  url: http://{address}/now
  body: {{ $eval: input }}
  accept: [200]
  idempotent: true
  read: {{ status: answer.body.state, result: answer.body }}
states: {{ done: completed }}
"
    )
}

/// A connector to a service that is asked later.
fn deferred(address: SocketAddr) -> String {
    format!(
        "name: deferred
execution_mode_support: async-only
allow: ['{address}']
concurrency: {CONCURRENCY}
policy:
  default_retry_after_seconds: 1
  max_open_per_module: {MOST_OPEN}
  max_concurrent_polls_per_module: 16
submit:
  url: http://{address}/work
  body: {{ $eval: input }}
  accept: [202]
  idempotent: true
status: {{ url: 'http://{address}/work/${{uri(operation.remote_id)}}' }}
read: {{ id: answer.body.id, status: answer.body.state, result: answer.body }}
states: {{ queued: pending, running: running, done: completed }}
"
    )
}
