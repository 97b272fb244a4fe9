//! The scratch directory: what the nodes are set up with, and where everything of a drill is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::kind::{BEGUN, PLUGIN, SERVICE, ZOO};

/// The shortest lease that there is: work of the dead is taken over as soon as may be.
pub const LEASE_SECONDS: u64 = 30;

/// A step that a plugin does and one that the daemon does; the plugin emits an event, and somebody listens to that too.
const PIPELINES: &str = "pipelines:
- name: mill
  on: BEGUN
  steps: [{ id: one, uses: PLUGIN }, { id: two, uses: noop }]
- { name: watch, on: drill.ground, steps: [{ id: look, uses: noop }] }
";

const MANIFEST: &str = "manifest_spec: ductile.plugin
manifest_version: 1
name: PLUGIN
version: 0.1.0
protocol: 2
entrypoint: run
commands: [{ name: poll, type: read }, { name: handle, type: write }]
";

const PROGRAM: &str = r#"#!/bin/sh
cat > /dev/null
echo '{"status":"ok","result":"done","state_updates":{"seen":true},"events":[{"type":"drill.ground","payload":{}}]}'
"#;

/// Every kill of a node or of the service costs a try.
const HONEST_TRIES: &str = "1000";
/// A service that never answers in whole whether it has the work keeps its host asking: that has to be over before the calm is.
const ZOO_TRIES: &str = "40";

/// A connector to the drill's service, and what it is granted.
const CONNECTOR: &str = r#"name: NAME
execution_mode_support: async-only
allow: [ADDRESS]
concurrency: 16
retry: { max_attempts: TRIES, backoff_seconds: 0, max_backoff_seconds: 1 }
policy:
  default_retry_after_seconds: 1
  max_retry_after_seconds: 2
  max_ttl_seconds: TTL
  max_attempts: 100000
  max_open_per_module: 1000
  max_concurrent_polls_per_module: 16
  max_poll_error_backoff_seconds: 2
  invoke_timeout_ms: 2000
  status_timeout_ms: 1000
submit:
  url: http://ADDRESS/work
  body: { $eval: input }
  accept: [202]
  idempotent: true
lookup:
  url: http://ADDRESS/work?key=${uri(operation.id)}
  read: { status: "'queued'" }
status: { url: 'http://ADDRESS/work/${uri(operation.remote_id)}' }
cancel: { url: 'http://ADDRESS/work/${uri(operation.remote_id)}/cancel' }
result: { url: 'http://ADDRESS/work/${uri(operation.remote_id)}/result' }
read:
  id: answer.body.id
  status: answer.body.state
  progress: answer.body.progress
  error: answer.body.error.message
  error_code: answer.body.error.code
states: { queued: pending, running: running, done: completed, failed: failed, timed_out: timed-out, cancelled: cancelled }
"#;
/// Honest work lives longer than any fault lasts; whatever misbehaves is over soon.
const HONEST_TTL_SECONDS: &str = "900";
const ZOO_TTL_SECONDS: &str = "12";

/// Where everything of a drill is.
#[derive(Debug)]
pub struct Scratch {
    pub dir: PathBuf,
}

impl Scratch {
    /// Makes it, with everything that the nodes are set up with but the service, which is not there yet.
    pub fn make(dir: PathBuf) -> Result<Self> {
        let scratch = Self { dir };
        let plugin = scratch.dir.join("plugins").join(PLUGIN);
        fs::create_dir_all(&plugin).with_context(|| format!("cannot make {}", plugin.display()))?;
        scratch.write("plugins/grind/manifest.yaml", &MANIFEST.replace("PLUGIN", PLUGIN))?;
        scratch.write("plugins/grind/run", PROGRAM)?;
        fs::set_permissions(plugin.join("run"), fs::Permissions::from_mode(0o755))?;
        scratch.write("pipelines.yaml", &PIPELINES.replace("BEGUN", BEGUN).replace("PLUGIN", PLUGIN))?;
        scratch.write("effects", "")?;
        Ok(scratch)
    }

    /// Tells the nodes where the service is.
    pub fn connect(&self, service: &str) -> Result<()> {
        let address = service.trim_start_matches("http://");
        for (name, seconds, tries) in
            [(SERVICE, HONEST_TTL_SECONDS, HONEST_TRIES), (ZOO, ZOO_TTL_SECONDS, ZOO_TRIES)]
        {
            let connector = CONNECTOR
                .replace("NAME", name)
                .replace("ADDRESS", address)
                .replace("TTL", seconds)
                .replace("TRIES", tries);
            self.write(&format!("{name}.yaml"), &connector)?;
        }
        let renew = LEASE_SECONDS / 3;
        let config = format!(
            "lease: {{ seconds: {LEASE_SECONDS}, renew_every_seconds: {renew} }}\n\
             connectors: [{SERVICE}.yaml, {ZOO}.yaml]\n\
             plugin_roots: [plugins]\n\
             pipelines: [pipelines.yaml]\n\
             plugins: {{ {PLUGIN}: {{ parallelism: 4, retry: {{ max_attempts: 1000, backoff_base_seconds: 0 }} }} }}\n\
             policy: {{ max_open_total: 4000, max_concurrent_polls_total: 64 }}\n"
        );
        self.write("longhaul.yaml", &config)
    }

    pub fn config(&self) -> PathBuf {
        self.dir.join("longhaul.yaml")
    }

    /// Where commands leave a line for each of their attempts.
    pub fn effects(&self) -> PathBuf {
        self.dir.join("effects")
    }

    /// Where backups are, and what is restored of them.
    pub fn backups(&self) -> PathBuf {
        self.dir.join("backups")
    }

    /// The data directory of a node.
    pub fn node(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path: &Path = &self.dir.join(name);
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}
