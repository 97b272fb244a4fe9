//! A backend: a configured command that is started in the folder that a job names, for one attempt, with the prompt on its standard
//! input and a token that is for this attempt alone. It may report by itself while it works; its end is the end of the attempt.
//!
//! Which folders may be named is the operator's list. Nothing is looked for elsewhere: a folder, a profile or a program that is not
//! there is refused, with what was looked for.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::AttemptId;
use domain::job::{Job, JobSpec};
use futures::future::BoxFuture;
use serde::Deserialize;

use super::process::{ProcessExecutor, ProcessHost, ProcessSettings, Program};
use crate::{Assignment, Failure, Link, Produced, Specialist, Unfit};

/// Where programs are looked for by a command that has no PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
const URL: &str = "LONGHAUL_URL";
const TOKEN: &str = "LONGHAUL_TOKEN";

/// Who gives a command the token with which it reports on its attempt, and on nothing else.
pub trait AttemptTokens: Send + Sync {
    /// The token.
    fn token_for(&self, job: &Job, attempt_id: &AttemptId) -> String;
}

/// What a backend runs, and where it may.
#[derive(Clone, Debug)]
pub struct BackendSettings {
    /// The program and its first arguments.
    pub argv: Vec<String>,
    /// More arguments, by the name that a job may give.
    pub profiles: BTreeMap<String, Vec<String>>,
    /// The folders under which a job's folder must be.
    pub roots: Vec<PathBuf>,
    /// The bounds of the command.
    pub process: ProcessSettings,
}

/// A backend at work.
pub struct Backend {
    host: Arc<ProcessHost>,
    settings: BackendSettings,
    /// Where the command reaches this daemon.
    url: String,
    tokens: Arc<dyn AttemptTokens>,
}

/// Where one job is done, and how.
struct Place {
    folder: PathBuf,
    argv: Vec<String>,
}

impl Backend {
    /// A backend that reports here.
    pub fn new(
        host: Arc<ProcessHost>,
        settings: BackendSettings,
        url: String,
        tokens: Arc<dyn AttemptTokens>,
    ) -> Self {
        Self { host, settings, url, tokens }
    }

    fn place(&self, spec: &JobSpec) -> Result<Place, Unfit> {
        let path = spec
            .path
            .as_deref()
            .ok_or_else(|| unfit("path", "path_missing", "name the folder to work in"))?;
        let folder = self.folder(Path::new(path))?;
        let mut argv = self.settings.argv.clone();
        if let Some(profile) = profile_of(spec) {
            let Some(more) = self.settings.profiles.get(&profile) else {
                let known: Vec<&str> = self.settings.profiles.keys().map(String::as_str).collect();
                let told = format!("there is no profile {profile:?}; there are: {}", known.join(", "));
                return Err(unfit("profile", "unknown_profile", told));
            };
            argv.extend(more.iter().cloned());
        }
        self.check_program(argv.first().map_or("", String::as_str), &folder)?;
        Ok(Place { folder, argv })
    }

    /// The folder itself, wherever links lead.
    fn folder(&self, path: &Path) -> Result<PathBuf, Unfit> {
        let shown = path.display();
        if path.components().any(|part| part == std::path::Component::ParentDir) {
            return Err(unfit(
                "path",
                "path_not_allowed",
                format!("{shown} goes up; name the folder itself"),
            ));
        }
        if !path.is_absolute() {
            return Err(unfit("path", "path_not_absolute", format!("{shown} does not begin at the root")));
        }
        // Whether it is there is not told of what is outside.
        let outside =
            || unfit("path", "path_not_allowed", format!("{shown} is not in a folder that jobs may name"));
        let Ok(folder) = path.canonicalize() else {
            let allowed = self.settings.roots.iter().any(|root| path.starts_with(root));
            let missing = || unfit("path", "path_missing", format!("{shown} is not there"));
            return Err(if allowed { missing() } else { outside() });
        };
        let mut roots = self.settings.roots.iter().filter_map(|root| root.canonicalize().ok());
        if !roots.any(|root| folder.starts_with(root)) {
            return Err(outside());
        }
        if !folder.is_dir() {
            return Err(unfit("path", "path_missing", format!("{shown} is no folder")));
        }
        Ok(folder)
    }

    fn check_program(&self, program: &str, folder: &Path) -> Result<(), Unfit> {
        let search = self.search_path();
        let is_there = if program.contains('/') {
            is_program(&folder.join(program))
        } else {
            env::split_paths(&search).any(|dir| is_program(&folder.join(dir).join(program)))
        };
        if is_there {
            return Ok(());
        }
        let told = format!("the program {program:?} is not on the path {}", search.display());
        Err(unfit("backend", "program_not_found", told))
    }

    /// The PATH that the command will have.
    fn search_path(&self) -> OsString {
        let process = &self.settings.process;
        let inherited = process.inherited.iter().any(|name| name == "PATH");
        let set = process.environment.get("PATH").map(OsString::from);
        set.or_else(|| env::var_os("PATH").filter(|_| inherited)).unwrap_or_else(|| DEFAULT_PATH.into())
    }

    async fn fire(&self, assignment: Assignment, link: Link) -> Produced {
        let place = match self.place(&assignment.job.spec) {
            Ok(place) => place,
            Err(unfit) => return Produced::Failed(Failure::permanent("spawn_failed", unfit.told)),
        };
        let token = self.tokens.token_for(&assignment.job, &assignment.attempt_id);
        let process = ProcessSettings {
            program: Program::Fixed(place.argv),
            working_directory: place.folder,
            own: BTreeMap::from([(URL, self.url.clone()), (TOKEN, token)]),
            ..self.settings.process.clone()
        };
        let input = told(&assignment).into_bytes();
        ProcessExecutor::new(self.host.clone(), process)
            .produce(Assignment { input, ..assignment }, link)
            .await
    }
}

impl Specialist for Backend {
    fn produce(&self, assignment: Assignment, link: Link) -> BoxFuture<'_, Produced> {
        Box::pin(self.fire(assignment, link))
    }

    fn is_backend(&self) -> bool {
        true
    }

    fn unfit(&self, spec: &JobSpec) -> Option<Unfit> {
        self.place(spec).err()
    }
}

/// What the command reads.
fn told(assignment: &Assignment) -> String {
    let (job, attempt_id) = (&assignment.job, &assignment.attempt_id);
    let prompt = assignment.prompt.as_ref().map(|prompt| String::from_utf8_lossy(prompt));
    let prompt = prompt.as_deref().unwrap_or(&job.spec.title);
    format!(
        "This is a durable job of longhaul.\n\
         job_id: {id}\nattempt_id: {attempt_id}\n\n{prompt}\n\n\
         While you work, report state running with this attempt id: \
         POST ${URL}/jobs/{id}/heartbeat {{\"attempt_id\": \"{attempt_id}\"}} with the bearer token ${TOKEN}.\n\
         At the end report with the same id: POST ${URL}/jobs/{id}/complete or /fail; \
         or end, and what you have printed is the result. Having received this completes nothing.\n",
        id = job.id,
    )
}

/// The named extra arguments that a job asks for.
fn profile_of(spec: &JobSpec) -> Option<String> {
    #[derive(Deserialize)]
    struct Execution {
        target: Target,
    }
    #[derive(Deserialize)]
    struct Target {
        profile: Option<String>,
    }
    let execution = spec.execution.as_ref()?;
    serde_json::from_str::<Execution>(execution.as_str()).ok()?.target.profile
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn unfit(field: &'static str, code: &'static str, told: impl Into<String>) -> Unfit {
    Unfit { field, code, told: told.into() }
}
