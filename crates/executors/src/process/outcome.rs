//! What an attempt comes to: the result or the failure, with what there is to see of it.

use std::fmt::Write as _;
use std::path::Path;

use domain::job::Retryable;
use domain::limit::NamedLimit;
use domain::limits::MAX_BODY_BYTES;
use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::attempt::TOO_LONG;
use super::capture::Captured;
use super::command_line::CommandLine;
use super::follow::Ending;
use super::report::Exit;
use super::settings::ProcessSettings;
use engine::{Failure, Output, Produced, Stop};

/// By `sysexits.h`: try again later.
const EX_TEMPFAIL: i32 = 75;

/// All that came out of a command.
pub(super) struct Outputs<'a> {
    pub dir: &'a Path,
    pub stdout: Captured,
    pub stderr: Captured,
    pub dropped_progress: u64,
}

pub(super) async fn produced(
    ending: Ending,
    outputs: Outputs<'_>,
    command: &CommandLine,
    settings: &ProcessSettings,
) -> Produced {
    let own_end = command.own_end;
    let told = |what: &str| outputs.told(what);
    match ending {
        Ending::Exited(Exit::Code(0)) => match outputs.lost() {
            None => Produced::Completed(outputs.result().await),
            Some(failure) => Produced::Failed(outputs.shown(failure, [])),
        },
        Ending::Exited(exit) => {
            let (failure, number) = of_exit(exit, own_end, told);
            let failure = limited_by_some(failure, settings.limits.reached_at(exit));
            Produced::Failed(outputs.shown(failure, [number]))
        }
        Ending::NotStarted { errno, message } => {
            let program = command.argv.first().map_or("", String::as_str);
            Produced::Failed(not_started(program, errno, &message))
        }
        Ending::Stopped(Stop::Cancelled) => {
            let failure = Failure::permanent("cancelled", told("the command was stopped as asked"));
            Produced::StoppedWith(outputs.shown(failure, []))
        }
        Ending::Stopped(Stop::TimeOver) => {
            let failure =
                of_own_end(own_end, "timed_out", told("the command ran out of the job's time limit"));
            Produced::StoppedWith(outputs.shown(failure, []))
        }
        // Nobody may say how it ended: the next owner tries it again.
        Ending::Stopped(Stop::Shutdown | Stop::Reported | Stop::LeaseLost | Stop::GoOn) => Produced::Stopped,
        Ending::TimeOver => {
            let message = told("the command ran out of the executor's time limit");
            let failure = settings.reached(of_own_end(own_end, "timed_out", message));
            Produced::Failed(outputs.shown(failure, []))
        }
        Ending::SupervisorLost => {
            let message = told(
                "the supervisor was killed, so that no cancel was possible; what it had started was ended",
            );
            let failure = Failure::transient("supervisor_lost", message);
            Produced::Failed(outputs.shown(failure, [("cancel_possible", json!(false))]))
        }
    }
}

pub(crate) fn limited_by_some(failure: Failure, limit: Option<NamedLimit>) -> Failure {
    match limit {
        Some(limit) => failure.limited_by(limit),
        None => failure,
    }
}

/// A signal that nobody sends by mistake came from outside; any other end is the command's own.
fn of_exit(
    exit: Exit,
    own_end: Retryable,
    told: impl Fn(&str) -> String,
) -> (Failure, (&'static str, Value)) {
    match exit {
        Exit::Code(code) => {
            let reason = if code == EX_TEMPFAIL { "temporary_failure" } else { "exit_nonzero" };
            let message = told(&format!("the command exited with {code}"));
            (of_own_end(own_end, reason, message), ("exit_code", json!(code)))
        }
        Exit::Signal(signal) => {
            let message = told(&format!("the command was ended by signal {signal}"));
            let from_outside = [Signal::KILL, Signal::TERM].map(Signal::as_raw).contains(&signal);
            let own_end = if from_outside { Retryable::Yes } else { own_end };
            (of_own_end(own_end, "killed_by_signal", message), ("signal", json!(signal)))
        }
    }
}

fn of_own_end(own_end: Retryable, reason: &str, message: String) -> Failure {
    Failure { retryable: own_end, ..Failure::permanent(reason, message) }
}

fn not_started(program: &str, errno: i32, message: &str) -> Failure {
    let message = format!("{program:?} could not be started: {message}");
    let for_good = [
        Errno::NOENT,
        Errno::ACCESS,
        Errno::PERM,
        Errno::NOEXEC,
        Errno::NOTDIR,
        Errno::ISDIR,
        Errno::LOOP,
        Errno::NAMETOOLONG,
    ];
    if errno == Errno::TOOBIG.raw_os_error() {
        return Failure::permanent("invalid_input", TOO_LONG);
    }
    if for_good.iter().any(|known| known.raw_os_error() == errno) {
        Failure::permanent("program_not_found", message)
    } else {
        Failure::transient("not_started", message)
    }
}

impl Outputs<'_> {
    /// Output that is one JSON value is the result; any other is shown by its end.
    async fn result(&self) -> Output {
        let data = match self.json().await {
            Some(data) => data,
            None => json!({ "exit_code": 0, "stdout_tail": self.stdout.tail() }).to_string().into_bytes(),
        };
        let mut summary = "exited with 0".to_owned();
        if self.stdout.truncated || self.stderr.truncated {
            summary.push_str("; output truncated");
        }
        if self.dropped_progress > 0 {
            let _ = write!(summary, "; {} lines of progress dropped", self.dropped_progress);
        }
        Output { summary: Some(summary), data: Some(data), artifacts: self.artifacts(), ..Output::default() }
    }

    async fn json(&self) -> Option<Vec<u8>> {
        let kept = self.stdout.kept.as_ref()?;
        if self.stdout.truncated || kept.bytes > MAX_BODY_BYTES as u64 {
            return None;
        }
        let bytes = tokio::fs::read(self.dir.join(&kept.path)).await.ok()?;
        serde_json::from_slice::<Value>(&bytes).ok()?;
        Some(bytes.trim_ascii().to_vec())
    }

    /// A result whose output could not be written down is none.
    fn lost(&self) -> Option<Failure> {
        let error = self.stdout.error.as_ref().or(self.stderr.error.as_ref())?;
        Some(Failure::transient("output_not_kept", format!("the output could not be kept: {error}")))
    }

    /// What happened, and the command's last words.
    fn told(&self, what: &str) -> String {
        let (stderr, stdout) = (self.stderr.tail(), self.stdout.tail());
        match (stderr.trim(), stdout.trim()) {
            ("", "") => what.to_owned(),
            ("", tail) | (tail, _) => format!("{what}: {tail}"),
        }
    }

    /// A failure with all that there is to see of it.
    fn shown<const N: usize>(&self, failure: Failure, known: [(&str, Value); N]) -> Failure {
        let mut details = json!({ "stdout_tail": self.stdout.tail(), "stderr_tail": self.stderr.tail() });
        for (name, value) in known {
            details[name] = value;
        }
        Failure { artifacts: self.artifacts(), details: Some(Box::new(details)), ..failure }
    }

    fn artifacts(&self) -> Option<Vec<u8>> {
        let outputs = [&self.stdout, &self.stderr].into_iter();
        let list: Vec<Value> =
            outputs.filter_map(|output| Some(output.kept.as_ref()?.listed(output.name))).collect();
        (!list.is_empty()).then(|| Value::from(list).to_string().into_bytes())
    }
}
