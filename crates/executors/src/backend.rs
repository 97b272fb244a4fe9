//! A backend: a configured command that is started in the folder that a job names, with the prompt on its standard input and a token
//! that is for this attempt alone. It may report by itself while it works.
//!
//! Started for one attempt, its end is the end of the attempt. A persistent one stays (`residents.rs`) and is given job after job,
//! each as one line; what it is told to stop, it is stopped with.
//!
//! Which folders may be named is the operator's list. Nothing is looked for elsewhere: a folder, a profile or a program that is not
//! there is refused, with what was looked for.

mod place;
mod residents;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::AttemptId;
use domain::job::{CancelRecipient, Job, JobSpec};
use futures::future::BoxFuture;
use serde_json::json;
use serde_json::value::RawValue;

use super::process::{
    ProcessExecutor, ProcessHost, ProcessSettings, Program, Resident, Turned, longest_answer,
};
use engine::{Assignment, Failure, Link, Produced, Specialist, Stop, Unfit};
use place::{Place, Scope};
use residents::{Household, Residents};

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
    /// Commands that stay, at the same time.
    pub most_persistent: usize,
    /// How long one of those stays without a job.
    pub idle_for: Duration,
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
    residents: Arc<Residents>,
}

impl Backend {
    /// A backend that reports here.
    pub fn new(
        host: Arc<ProcessHost>,
        settings: BackendSettings,
        url: String,
        tokens: Arc<dyn AttemptTokens>,
    ) -> Self {
        let residents = Arc::new(Residents::new(settings.most_persistent, settings.idle_for));
        Self { host, settings, url, tokens, residents }
    }

    async fn work(&self, assignment: Assignment, link: Link) -> Produced {
        let place = match self.settings.place(&assignment.job.spec) {
            Ok(place) => place,
            Err(unfit) => return Produced::Failed(Failure::permanent("spawn_failed", unfit.told)),
        };
        let token = self.tokens.token_for(&assignment.job, &assignment.attempt_id);
        match place.scope {
            Scope::PerFire => self.fire(place, token, assignment, link).await,
            Scope::Persistent => self.hand_over(place, &token, assignment, link).await,
        }
    }

    async fn fire(&self, place: Place, token: String, assignment: Assignment, link: Link) -> Produced {
        let process = ProcessSettings {
            own: BTreeMap::from([(URL, self.url.clone()), (TOKEN, token)]),
            ..self.process_in(&place)
        };
        let input = told(&assignment).into_bytes();
        ProcessExecutor::new(self.host.clone(), process)
            .produce(Assignment { input, ..assignment }, link)
            .await
    }

    /// Gives the job to the command that stays in its folder, which is started if it is not there.
    async fn hand_over(&self, place: Place, token: &str, assignment: Assignment, mut link: Link) -> Produced {
        let own = BTreeMap::from([(URL, self.url.clone())]);
        let process = ProcessSettings { own, ..self.process_in(&place) };
        let Place { folder, profile, .. } = place;
        let household = Household { circle: assignment.job.spec.circle.clone(), folder, profile };
        let mut held = tokio::select! {
            held = self.residents.seat(household) => held,
            stop = link.must_stop() => return stopped(stop),
        };
        let resident = match held.resident_or(|| Resident::start(&self.host, process, &assignment)) {
            Ok(resident) => resident,
            Err(failure) => return Produced::Failed(failure),
        };
        let line = self.line(&assignment, token);
        let own_link = link.clone();
        match resident.turn(&line, &assignment.attempt_id, link).await {
            Turned::Answered(produced) => {
                own_link.leave(held.keep());
                produced
            }
            Turned::Told(Stop::Reported) => {
                own_link.leave(held.keep());
                Produced::Stopped
            }
            Turned::Told(stop) => {
                if stop == Stop::Cancelled {
                    own_link.sent_cancel_to(CancelRecipient::Process);
                }
                held.end().await;
                stopped(stop)
            }
            Turned::TimeOver => {
                held.end().await;
                let told = "the backend ran out of the executor's time limit";
                Produced::Failed(self.settings.process.reached(Failure::transient("timed_out", told)))
            }
            Turned::Unreadable => {
                held.end().await;
                let told = "the backend has said more in one line than a result may have";
                Produced::Failed(Failure::permanent("output_too_large", told).limited_by(longest_answer()))
            }
            Turned::Ended(failure) => Produced::Failed(failure),
        }
    }

    fn process_in(&self, place: &Place) -> ProcessSettings {
        ProcessSettings {
            program: Program::Fixed(place.argv.clone()),
            working_directory: place.folder.clone(),
            ..self.settings.process.clone()
        }
    }

    /// A job as a command that stays reads it.
    fn line(&self, assignment: &Assignment, token: &str) -> Vec<u8> {
        let (job, attempt_id) = (&assignment.job, &assignment.attempt_id);
        let prompt = prompt_of(assignment);
        let input: Option<&RawValue> = serde_json::from_slice(&assignment.input).ok();
        let (id, url) = (job.id.as_str(), &self.url);
        let attempt_id = attempt_id.as_str();
        let mut line =
            json!({ "job_id": id, "attempt_id": attempt_id, "prompt": prompt, "url": url, "token": token })
                .to_string();
        // As it was sent, not as it would be written anew.
        line.truncate(line.len() - 1);
        line.push_str(",\"input\":");
        line.push_str(input.map_or("null", RawValue::get));
        line.push_str("}\n");
        line.into_bytes()
    }
}

/// What is to be said of an attempt that was told to stop, and has.
fn stopped(stop: Stop) -> Produced {
    match stop {
        Stop::Cancelled => {
            Produced::StoppedWith(Failure::permanent("cancelled", "the backend was stopped as asked"))
        }
        Stop::TimeOver => {
            let told = "the backend ran out of the job's time limit and was stopped";
            Produced::StoppedWith(Failure::transient("timed_out", told))
        }
        // Nobody may say how it ended.
        Stop::GoOn | Stop::Reported | Stop::LeaseLost | Stop::Shutdown => Produced::Stopped,
    }
}

impl Specialist for Backend {
    fn produce(&self, assignment: Assignment, link: Link) -> BoxFuture<'_, Produced> {
        Box::pin(self.work(assignment, link))
    }

    fn traits(&self) -> engine::ExecutorTraits {
        engine::ExecutorTraits { is_backend: true, ..engine::ExecutorTraits::default() }
    }

    fn unfit(&self, spec: &JobSpec) -> Option<Unfit> {
        self.settings.place(spec).err()
    }

    /// A relative path is one in the folder that a job names.
    fn missing_program(&self) -> Option<String> {
        let program = self.settings.argv.first()?;
        let is_fixed = !program.contains('/') || program.starts_with('/');
        self.settings.process.missing(program).filter(|_| is_fixed)
    }
}

/// What the command reads.
fn told(assignment: &Assignment) -> String {
    let (job, attempt_id) = (&assignment.job, &assignment.attempt_id);
    let prompt = prompt_of(assignment);
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

/// What to do, in words.
fn prompt_of(assignment: &Assignment) -> Cow<'_, str> {
    match &assignment.prompt {
        Some(prompt) => String::from_utf8_lossy(prompt),
        None => Cow::Borrowed(&assignment.job.spec.title),
    }
}
