//! What an attempt comes to: the result or the failure, with what there is to see of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use domain::limits::MAX_BODY_BYTES;
use rustix::io::Errno;
use serde_json::{Value, json};

use super::attempt::{STDERR, STDOUT};
use super::capture::Captured;
use super::follow::Ending;
use super::report::Exit;
use crate::{Failure, Output, Produced};

/// By `sysexits.h`: try again later.
const EX_TEMPFAIL: i32 = 75;

/// All that came out of a command.
pub(super) struct Outputs<'a> {
    pub dir: &'a Path,
    pub stdout_path: PathBuf,
    pub stdout: Captured,
    pub stderr_path: PathBuf,
    pub stderr: Captured,
    pub dropped_progress: u64,
}

pub(super) async fn produced(ending: Ending, outputs: Outputs<'_>) -> Produced {
    let failure = match ending {
        Ending::Stopped => return Produced::Stopped,
        Ending::Exited(Exit::Code(0)) => match outputs.lost() {
            None => return Produced::Completed(outputs.result().await),
            Some(failure) => failure,
        },
        Ending::Exited(Exit::Code(code)) => {
            let reason = if code == EX_TEMPFAIL { "temporary_failure" } else { "exit_nonzero" };
            Failure::transient(reason, outputs.told(format!("the command exited with {code}")))
        }
        Ending::Exited(Exit::Signal(signal)) => {
            let message = outputs.told(format!("the command was ended by signal {signal}"));
            Failure::transient("killed_by_signal", message)
        }
        Ending::NotStarted { errno, message } => not_started(errno, &message),
        Ending::TimeOver => Failure::transient(
            "timed_out",
            outputs.told("the command ran out of the executor's time limit".to_owned()),
        ),
        Ending::SupervisorLost => Failure::transient(
            "supervisor_lost",
            "the supervisor was killed; what it had started was ended".to_owned(),
        ),
    };
    Produced::Failed(Failure { artifacts: outputs.artifacts(), ..failure })
}

fn not_started(errno: i32, message: &str) -> Failure {
    let message = format!("the command could not be started: {message}");
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
        Output { summary: Some(summary), data: Some(data), artifacts: self.artifacts() }
    }

    async fn json(&self) -> Option<Vec<u8>> {
        let kept = self.stdout.kept.as_ref()?;
        if self.stdout.truncated || kept.bytes > MAX_BODY_BYTES as u64 {
            return None;
        }
        let bytes = tokio::fs::read(self.dir.join(&self.stdout_path)).await.ok()?;
        serde_json::from_slice::<Value>(&bytes).ok()?;
        Some(bytes.trim_ascii().to_vec())
    }

    /// A result whose output could not be written down is none.
    fn lost(&self) -> Option<Failure> {
        let error = self.stdout.error.as_ref().or(self.stderr.error.as_ref())?;
        Some(Failure::transient("output_not_kept", format!("the output could not be kept: {error}")))
    }

    fn told(&self, what: String) -> String {
        match self.stderr.tail().trim() {
            "" => what,
            tail => format!("{what}: {tail}"),
        }
    }

    fn artifacts(&self) -> Option<Vec<u8>> {
        let outputs = [(STDOUT, &self.stdout_path, &self.stdout), (STDERR, &self.stderr_path, &self.stderr)];
        let list: Vec<Value> = outputs
            .into_iter()
            .filter_map(|(name, path, captured)| {
                let kept = captured.kept.as_ref()?;
                Some(json!({
                    "name": name,
                    "path": path,
                    "bytes": kept.bytes,
                    "truncated": captured.truncated,
                    "sha256": kept.sha256,
                }))
            })
            .collect();
        (!list.is_empty()).then(|| Value::from(list).to_string().into_bytes())
    }
}
