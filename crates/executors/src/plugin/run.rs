//! One attempt of a plugin: the request goes in, the answer comes out, and what there is to see of it is kept.
//!
//! The process runs under the same supervisor as every command: nothing that it starts outlives the attempt.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::breaker::Ended;
use domain::job::AttemptLimit;
use domain::limits::{MAX_BODY_BYTES, MAX_SUMMARY_BYTES, cut};
use domain::{Json, Timestamp};
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{PluginFact, Store, StoreError};

use super::super::http::{Mask, SecretError, Secrets};
use super::super::process::{
    Collected, Ending, Exit, Heard, HeardLimits, ProcessHost, ProcessSettings, Program, collect,
    keep_artifact,
};
use super::breaker;
use super::envelope::{Given, request};
use super::input::PluginInput;
use super::manifest::{FactOutput, FactView};
use super::outcome::{Verdict, is_being_written, judge};
use super::registry::Plugin;
use super::response::{Answer, Log};
use super::trust::first_line;
use super::workspace::{Leavings, Workspace};
use crate::{Reach, Workspaces};
use engine::JsonObject;
use engine::object_text;
use engine::{
    Admission, Assignment, Clock, Emitted, Executor, ExecutorTraits, Failure, Link, Modes, Output, Produced,
    Specialist, StateChange, StateUpdate,
};

const MAX_STDOUT_BYTES: usize = 10 * 1_048_576;
const MAX_STDERR_BYTES: usize = 65_536;
/// Read beyond what is kept, so that a secret across the end is taken out whole.
const BEYOND_BYTES: usize = 16_384;
/// The end of an output that a failure shows.
const TAIL_BYTES: usize = 4_096;
/// A file that someone has just written is tried again so often.
const MAX_STARTS: u32 = 6;
/// And the first time after this long, then twice as long each time.
const START_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// A plugin at work.
pub struct PluginExecutor {
    host: Arc<ProcessHost>,
    plugin: Arc<Plugin>,
    secrets: Value,
    mask: Mask,
    clock: Arc<dyn Clock>,
    /// Where it remembers.
    store: Arc<dyn Store>,
    /// Where it works.
    workspaces: Arc<Workspaces>,
}

/// What an attempt begins with.
struct Prepared {
    command: String,
    request: Vec<u8>,
    workspace: Workspace,
}

impl PluginExecutor {
    /// Reads its secrets.
    pub fn open(
        host: Arc<ProcessHost>,
        plugin: Arc<Plugin>,
        clock: Arc<dyn Clock>,
        store: Arc<dyn Store>,
        workspaces: Arc<Workspaces>,
    ) -> Result<Self, SecretError> {
        let secrets = Secrets::read(&plugin.settings.secrets, &|name| std::env::var(name).ok())?;
        Ok(Self { host, plugin, secrets: secrets.lent(), mask: secrets.mask(), clock, store, workspaces })
    }

    /// As an executor, to be registered under the plugin's name.
    pub fn executor(self) -> Executor {
        let settings = &self.plugin.settings;
        let (concurrency, retry) = (settings.parallelism.unwrap_or(1), settings.retry);
        Executor { specialist: Arc::new(self), concurrency, retry, modes: Modes::default() }
    }

    /// Tells its breaker what came of it.
    async fn work(&self, assignment: Assignment, link: Link) -> Produced {
        // A future that is dropped says nothing more: then the next attempt may find out.
        let mut trial = Trial { plugin: &self.plugin, clock: &*self.clock, ended: Ended::Unknown };
        let job = assignment.job.clone();
        // What cannot even be asked says nothing of the plugin.
        let prepared = match self.prepare(&assignment).await {
            Ok(prepared) => prepared,
            Err(failure) => return Produced::Failed(failure),
        };
        let produced = self.attempt(assignment, prepared, link).await;
        if let Produced::Completed(_) = &produced {
            trial.ended = Ended::Well;
        } else if let Produced::Failed(failure) = &produced {
            let for_good = job.fails_for_good(failure.retryable);
            trial.ended = if for_good { Ended::JobFailed } else { Ended::AttemptFailed };
        }
        produced
    }

    async fn attempt(&self, assignment: Assignment, prepared: Prepared, link: Link) -> Produced {
        let Prepared { command, request, workspace } = prepared;
        let files = workspace.path().to_owned();
        let collected = match self.start(&assignment, &command, request, files, link).await {
            Ok(collected) => collected,
            Err(failure) => return Produced::Failed(failure),
        };
        let strictness = self.plugin.settings.strictness;
        // What it logs is told while its answer is read, and must say who says it.
        let verdict = tracing::error_span!("plugin", name = self.plugin.name, job = %assignment.job.id)
            .in_scope(|| judge(&collected.ending, &collected.stdout, strictness, &self.mask));
        let ran_out_of_time = matches!(collected.ending, Ending::TimeOver);
        let seen = self.see(&assignment, collected, &verdict).await;
        match verdict {
            Verdict::Done(answer) => {
                let artifacts = self.host.artifacts();
                match workspace.end(&self.workspaces, artifacts, &assignment, &self.mask).await {
                    Ok(leavings) => self.completed(&command, answer, seen, leavings),
                    Err(failure) => Produced::Failed(seen.shown(failure)),
                }
            }
            Verdict::Failed(failure) if ran_out_of_time => {
                Produced::Failed(seen.shown(failure.limited_by(self.limit_of(&command))))
            }
            Verdict::Failed(failure) => Produced::Failed(seen.shown(failure)),
            Verdict::Stopped => Produced::Stopped,
            Verdict::StoppedWith(failure) => Produced::StoppedWith(seen.shown(failure)),
        }
    }

    fn limit_of(&self, command: &str) -> AttemptLimit {
        let seconds = self.plugin.settings.time_limit(command).as_secs();
        AttemptLimit::Executor { seconds, command: Some(command.to_owned()) }
    }

    /// The command, the whole request and where it works, or why there is none.
    async fn prepare(&self, assignment: &Assignment) -> Result<Prepared, Failure> {
        let invalid = |told: String| Failure::permanent("invalid_input", told);
        let input = PluginInput::read(&assignment.input).map_err(invalid)?;
        let command = input.command().to_owned();
        let Plugin { name, manifest, settings, .. } = &*self.plugin;
        if manifest.command(&command).is_none() {
            let known = manifest.command_names();
            let told = format!("the plugin {name:?} has no command {command:?}; it has {known}");
            return Err(Failure::permanent("unknown_command", told));
        }
        let state = self.state().await.map_err(|told| Failure::transient("state_unavailable", told))?;
        let named = input.workspace_dir.as_deref();
        let run_as = settings.run_as.as_ref();
        let workspace = Workspace::of(&self.workspaces, &*self.store, assignment, named, run_as).await?;
        let workspace_dir = workspace.path().to_str().ok_or_else(|| {
            Failure::permanent("workspace_unavailable", "the path of the workspace is not UTF-8")
        })?;
        let given = Given {
            workspace_dir,
            job_id: assignment.job.id.as_str(),
            plugin: name,
            config: &settings.config,
            state: &state,
            secrets: &self.secrets,
            deadline_at: self.clock.now().plus_seconds(settings.time_limit(&command).as_secs()),
        };
        let request = request(input, &given).map_err(|error| invalid(error.to_string()))?;
        Ok(Prepared { command, request, workspace })
    }

    /// What it remembers; nothing at first.
    async fn state(&self) -> Result<Box<RawValue>, String> {
        let row = self.store.plugin_state(&self.plugin.name).await.map_err(|error| error.to_string())?;
        let text = row.map_or_else(|| "{}".to_owned(), |row| row.state.to_string());
        RawValue::from_string(text).map_err(|error| error.to_string())
    }

    async fn start(
        &self,
        assignment: &Assignment,
        command: &str,
        request: Vec<u8>,
        files: PathBuf,
        link: Link,
    ) -> Result<Collected, Failure> {
        let Plugin { entrypoint, directory, settings, .. } = &*self.plugin;
        let Some(program) = entrypoint.to_str() else {
            let told = format!("{} is not UTF-8", entrypoint.display());
            return Err(Failure::permanent("spawn_error", told));
        };
        let process = ProcessSettings {
            inherited: settings.inherited(),
            time_limit: Some(settings.time_limit(command)),
            sandbox: settings.sandbox,
            run_as: settings.run_as.clone(),
            own_paths: vec![files, directory.clone()],
            ..ProcessSettings::new(Program::Fixed(vec![program.to_owned()]), ".")
        };
        let limits =
            HeardLimits { stdout_bytes: MAX_STDOUT_BYTES, stderr_bytes: MAX_STDERR_BYTES + BEYOND_BYTES };
        let mut wait = START_AGAIN_AFTER;
        for _ in 1..MAX_STARTS {
            let link = link.clone();
            let collected = collect(&self.host, &process, assignment, request.clone(), limits, link).await?;
            if !is_being_written(&collected.ending) {
                return Ok(self.named(collected));
            }
            tracing::info!(job = %assignment.job.id, "{program} is being written: it is started again in a moment");
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        collect(&self.host, &process, assignment, request, limits, link).await.map(|last| self.named(last))
    }

    /// What is missing is most often what the first line names.
    fn named(&self, mut collected: Collected) -> Collected {
        if let Ending::NotStarted { message, .. } = &mut collected.ending
            && let Some(interpreter) = first_line(&self.plugin.entrypoint)
        {
            *message = format!("{message}; its first line names the interpreter {interpreter}");
        }
        collected
    }

    /// Keeps what it said on standard error; of standard output only what is no answer.
    async fn see(&self, assignment: &Assignment, collected: Collected, verdict: &Verdict) -> Seen {
        let stderr = self.masked(collected.stderr);
        let stdout = match verdict {
            Verdict::Done(_) => Heard::default(),
            Verdict::Failed(_) | Verdict::Stopped | Verdict::StoppedWith(_) => self.masked(collected.stdout),
        };
        let ids = (&assignment.job.id, &assignment.attempt_id);
        let mut artifacts = Vec::new();
        for (name, heard) in [("stdout", &stdout), ("stderr", &stderr)] {
            if heard.bytes.is_empty() {
                continue;
            }
            match keep_artifact(&self.host, ids, name, heard).await {
                Ok(artifact) => artifacts.push(artifact),
                Err(error) => tracing::warn!(job = %assignment.job.id, "{name} could not be kept: {error}"),
            }
        }
        let exit = if let Ending::Exited(exit) = collected.ending { Some(exit) } else { None };
        Seen { stdout: tail(&stdout), stderr: tail(&stderr), exit, artifacts }
    }

    /// Without secrets, and cut to what is kept.
    fn masked(&self, heard: Heard) -> Heard {
        let Heard { mut bytes, mut truncated } = heard;
        if bytes.len() > MAX_STDERR_BYTES + BEYOND_BYTES {
            bytes.truncate(MAX_STDERR_BYTES + BEYOND_BYTES);
            truncated = true;
        }
        let mut bytes = if self.mask.is_empty() {
            bytes
        } else {
            self.mask.text(String::from_utf8_lossy(&bytes).into_owned()).into_bytes()
        };
        truncated |= bytes.len() > MAX_STDERR_BYTES;
        bytes.truncate(MAX_STDERR_BYTES);
        Heard { bytes, truncated }
    }

    fn completed(&self, command: &str, mut answer: Answer, mut seen: Seen, leavings: Leavings) -> Produced {
        answer.warnings.extend(leavings.warnings);
        seen.artifacts.extend(leavings.artifacts);
        let updates = std::mem::take(&mut answer.state_updates);
        let summary = cut(answer.result.trim(), MAX_SUMMARY_BYTES).to_owned();
        for warning in &answer.warnings {
            tracing::warn!(plugin = self.plugin.name, "{warning}");
        }
        let state = match self.remembered(command, updates) {
            Ok(state) => state,
            Err(error) => return Produced::Failed(Failure::permanent("bad_response", error.to_string())),
        };
        Produced::Completed(Output {
            summary: (!summary.is_empty()).then_some(summary),
            data: Some(data(&answer)),
            artifacts: seen.artifacts(),
            emitted: answer.events,
            left_files: leavings.left_files,
            state,
        })
    }

    /// What becomes of its state: merged, or kept as facts if the manifest says so for this command.
    fn remembered(&self, command: &str, updates: JsonObject) -> Result<Option<StateUpdate>, StoreError> {
        if updates.is_empty() {
            return Ok(None);
        }
        let plugin = self.plugin.name.clone();
        let rules = self.plugin.manifest.fact_outputs.iter().filter(|rule| rule.command == command);
        let rules: Vec<&FactOutput> = rules.collect();
        if rules.is_empty() {
            return Ok(Some(StateUpdate { plugin, change: StateChange::Merge(updates), facts: Vec::new() }));
        }
        let json = object_text(&updates)?;
        let fact = |rule: &&FactOutput| PluginFact { fact_type: rule.fact_type.clone(), json: json.clone() };
        let facts = rules.iter().map(fact).collect();
        let mirrored = rules.iter().any(|rule| rule.view == FactView::Mirror);
        let change = if mirrored { StateChange::Replace(updates) } else { StateChange::Unchanged };
        Ok(Some(StateUpdate { plugin, change, facts }))
    }
}

impl Specialist for PluginExecutor {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.plugin.name)
    }

    /// Dropping the future closes the line to the supervisor, which ends the tree.
    fn produce(&self, assignment: Assignment, link: Link) -> BoxFuture<'_, Produced> {
        Box::pin(self.work(assignment, link))
    }

    fn lane(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(self.plugin.lane()))
    }

    fn let_in(&self, now: Timestamp) -> Result<Admission, Timestamp> {
        breaker::let_in(&self.plugin.breaker, now)
    }

    fn left_alone_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.plugin.breaker.lock().left_alone_until(now)
    }

    fn traits(&self) -> ExecutorTraits {
        let needs_its_node = self.workspaces.settings().reach == Reach::ItsNode;
        ExecutorTraits { takes_events: true, needs_its_node, ..ExecutorTraits::default() }
    }
}

/// An attempt whose breaker is told of its end, whatever that is.
struct Trial<'a> {
    plugin: &'a Plugin,
    clock: &'a dyn Clock,
    ended: Ended,
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        self.plugin.breaker.lock().note(self.ended, self.clock.now());
    }
}

/// What there is to see of an attempt.
struct Seen {
    stdout: String,
    stderr: String,
    exit: Option<Exit>,
    artifacts: Vec<Value>,
}

impl Seen {
    fn artifacts(&self) -> Option<Vec<u8>> {
        (!self.artifacts.is_empty()).then(|| Value::from(self.artifacts.clone()).to_string().into_bytes())
    }

    /// A failure with all that there is to see of it, and the plugin's last words where it gave no reason.
    fn shown(&self, failure: Failure) -> Failure {
        let mut details = failure.details.map_or_else(|| json!({}), |details| *details);
        details["stdout_tail"] = json!(self.stdout);
        details["stderr_tail"] = json!(self.stderr);
        match self.exit {
            Some(Exit::Code(code)) => details["exit_code"] = json!(code),
            Some(Exit::Signal(signal)) => details["signal"] = json!(signal),
            None => {}
        }
        let said = self.stderr.trim();
        let message = match failure.reason.as_str() {
            "bad_response" | "timeout" if !said.is_empty() => format!("{}: {said}", failure.message),
            _ => failure.message,
        };
        Failure { artifacts: self.artifacts(), details: Some(Box::new(details)), message, ..failure }
    }
}

/// What the job's result says.
#[derive(Serialize)]
struct Data<'a> {
    result: &'a str,
    events: Vec<DataEvent<'a>>,
    #[serde(skip_serializing_if = "<[Log]>::is_empty")]
    logs: &'a [Log],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<&'a str>,
}

#[derive(Serialize)]
struct DataEvent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dedupe_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation: Option<&'a Json>,
}

/// The result's data. Where all of it would be too large, the payloads are left out: they went out with their events.
fn data(answer: &Answer) -> Vec<u8> {
    let whole = written(answer, &answer.logs, |event| serde_json::from_slice(&event.payload).ok());
    if whole.len() <= MAX_BODY_BYTES {
        return whole;
    }
    let short = written(answer, &[], |_| None);
    if short.len() <= MAX_BODY_BYTES {
        return short;
    }
    // How many events there may be, and how long their types, is bounded far below.
    let kinds: Vec<Value> = answer.events.iter().map(|event| json!({ "type": event.kind })).collect();
    json!({ "result": cut(&answer.result, MAX_SUMMARY_BYTES), "events": kinds, "warnings": [TOO_LARGE] })
        .to_string()
        .into_bytes()
}

const TOO_LARGE: &str = "what the plugin answered is too large to be kept whole";

fn written<'a>(
    answer: &'a Answer,
    logs: &'a [Log],
    payload: impl Fn(&'a Emitted) -> Option<&'a RawValue>,
) -> Vec<u8> {
    let events: Vec<DataEvent<'a>> = answer
        .events
        .iter()
        .map(|event| DataEvent {
            kind: &event.kind,
            payload: payload(event),
            dedupe_key: event.dedupe_key.as_deref(),
            correlation: event.correlation.as_ref(),
        })
        .collect();
    let left_out = events.iter().any(|event| event.payload.is_none());
    let warnings = answer.warnings.iter().map(String::as_str);
    let warnings = warnings.chain(left_out.then_some(TOO_LARGE)).collect();
    serde_json::to_vec(&Data { result: &answer.result, events, logs, warnings }).unwrap_or_default()
}

fn tail(heard: &Heard) -> String {
    let text = String::from_utf8_lossy(&heard.bytes);
    text[text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES))..].to_owned()
}
