//! The executors that every daemon has: `noop` gives its input back, `slow` takes its time, and `command` runs what the job names.

mod slow;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use engine::{Assignment, Executor, Executors, Link, Output, Produced, Specialist};
use executors::process::{ProcessExecutor, ProcessHost, ProcessSettings, Program};

use crate::config::Confinement;
use slow::Slow;

/// Their names, which no other executor may have.
pub const NAMES: [&str; 3] = [NOOP, SLOW, COMMAND];
const NOOP: &str = "noop";
const SLOW: &str = "slow";
pub const COMMAND: &str = "command";

/// Attempts at the same time of what occupies a processor or a client.
const CONCURRENCY: usize = 16;
/// Of what does nothing: no more than the store writes together.
const NOOP_CONCURRENCY: usize = 512;

/// Registers all of them. Commands run in `directory` unless their job says otherwise.
pub fn register(
    executors: &mut Executors,
    host: &Arc<ProcessHost>,
    directory: &Path,
    confinement: Confinement,
) {
    let command = confinement.applied_to(ProcessSettings::new(Program::FromJob, directory));
    let all: [(&str, Arc<dyn Specialist>, usize); 3] = [
        (NOOP, Arc::new(Noop), NOOP_CONCURRENCY),
        (SLOW, Arc::new(Slow), CONCURRENCY),
        (COMMAND, Arc::new(ProcessExecutor::new(host.clone(), command)), CONCURRENCY),
    ];
    for (name, specialist, concurrency) in all {
        let retry = Executors::DEFAULT_RETRY;
        executors
            .register(name, Executor { specialist, concurrency, retry, modes: engine::Modes::default() });
    }
}

/// What a specialist comes to.
type Producing<'a> = Pin<Box<dyn Future<Output = Produced> + Send + 'a>>;

/// Gives its input back at once.
struct Noop;

impl Specialist for Noop {
    fn produce(&self, assignment: Assignment, _: Link) -> Producing<'_> {
        let output = Output {
            summary: Some("nothing was to be done".to_owned()),
            data: Some(assignment.input),
            ..Output::default()
        };
        Box::pin(async move { Produced::Completed(output) })
    }
}
