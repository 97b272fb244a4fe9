//! What an attempt of a plugin comes to: how the process ended and what it answered, judged together.
//!
//! The answer is read first, so that an error that a plugin tells is honoured however it exits. A turn that succeeds exits with 0: an
//! answer that is ok with any other end is a failure like others, tried again. Exit code 78 only says that another attempt is of no use.

use domain::job::Retryable;
use rustix::io::Errno;
use serde_json::json;

use super::super::http::Mask;
use super::super::process::{Ending, Exit, Heard};
use super::response::{Answer, NoAnswer, Response};
use super::settings::Strictness;
use engine::{Failure, Stop};

/// By `sysexits.h`: it is set up wrongly, and will be the next time.
const EX_CONFIG: i32 = 78;

/// What an attempt comes to.
#[derive(Debug)]
pub(super) enum Verdict {
    Done(Answer),
    Failed(Failure),
    /// It was stopped, and nobody may say how it ended.
    Stopped,
    /// It was stopped, with what there is to see of it.
    StoppedWith(Failure),
}

/// Judges a process that is over.
pub(super) fn judge(ending: &Ending, stdout: &Heard, strictness: Strictness, mask: &Mask) -> Verdict {
    match ending {
        Ending::Exited(exit) => match answered(*exit, stdout, strictness, mask) {
            Ok(answer) => Verdict::Done(answer),
            Err(failure) => Verdict::Failed(of_no_use_again(*exit, failure)),
        },
        Ending::NotStarted { message, .. } => {
            let told = format!("the plugin could not be started: {message}");
            Verdict::Failed(Failure::transient("spawn_error", told))
        }
        Ending::TimeOver => {
            let told = "the plugin took longer than its command may and was stopped";
            Verdict::Failed(Failure::transient("timeout", told))
        }
        Ending::Stopped(Stop::Cancelled) => {
            Verdict::StoppedWith(Failure::permanent("cancelled", "the plugin was stopped as asked"))
        }
        Ending::Stopped(Stop::TimeOver) => {
            let told = "the plugin took longer than the job may and was stopped";
            Verdict::StoppedWith(Failure::transient("timeout", told))
        }
        Ending::Stopped(Stop::Shutdown | Stop::Reported | Stop::LeaseLost | Stop::GoOn) => Verdict::Stopped,
        Ending::SupervisorLost => {
            let told = "the supervisor was killed; what it had started was ended";
            Verdict::Failed(Failure::transient("supervisor_lost", told))
        }
    }
}

/// Whether the file was still open for writing: someone has just put it there, or a fork has not let go of it yet.
pub(super) fn is_being_written(ending: &Ending) -> bool {
    matches!(ending, Ending::NotStarted { errno, .. } if *errno == Errno::TXTBSY.raw_os_error())
}

/// How a process ended, in a few words.
pub(super) fn told_of(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exited with {code}"),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
    }
}

fn answered(exit: Exit, stdout: &Heard, strictness: Strictness, mask: &Mask) -> Result<Answer, Failure> {
    if stdout.truncated {
        let told = format!("the plugin said more than {} bytes on its standard output", stdout.bytes.len());
        return Err(Failure::transient("output_overflow", told));
    }
    match Response::read(&stdout.bytes, strictness, mask) {
        Ok(Response::Ok(answer)) if exit == Exit::Code(0) => Ok(answer),
        Ok(Response::Ok(_)) => {
            let told =
                format!("the plugin answered ok but {}; a turn that succeeds exits with 0", told_of(exit));
            Err(Failure::transient("plugin_error", told))
        }
        Ok(Response::Error { error, retry: true, warnings }) => {
            Err(with_warnings(Failure::transient("plugin_error", error), &warnings))
        }
        Ok(Response::Error { error, retry: false, warnings }) => {
            Err(with_warnings(Failure::permanent("plugin_retry_false", error), &warnings))
        }
        Err(NoAnswer::Unreadable(told)) => {
            let told = format!("the plugin {} without an answer: {told}", told_of(exit));
            Err(Failure::transient("bad_response", told))
        }
        Err(NoAnswer::Refused(failure)) => Err(*failure),
    }
}

fn with_warnings(failure: Failure, warnings: &[String]) -> Failure {
    if warnings.is_empty() {
        return failure;
    }
    Failure { details: Some(Box::new(json!({ "warnings": warnings }))), ..failure }
}

fn of_no_use_again(exit: Exit, failure: Failure) -> Failure {
    if exit != Exit::Code(EX_CONFIG) {
        return failure;
    }
    Failure { reason: "exit_code_78".to_owned(), retryable: Retryable::No, ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ending: &Ending, stdout: &str) -> Verdict {
        let heard = Heard { bytes: stdout.as_bytes().to_vec(), truncated: false };
        judge(ending, &heard, Strictness::Lenient, &Mask::default())
    }

    #[track_caller]
    fn failed(code: i32, stdout: &str) -> (String, Retryable) {
        match verdict(&Ending::Exited(Exit::Code(code)), stdout) {
            Verdict::Failed(failure) => (failure.reason, failure.retryable),
            other @ (Verdict::Done(_) | Verdict::Stopped | Verdict::StoppedWith(_)) => {
                panic!("{code} {stdout}: {other:?}")
            }
        }
    }

    const OK: &str = r#"{"status":"ok","result":"done"}"#;
    const ERROR: &str = r#"{"status":"error","error":"no paper"}"#;
    const FINAL: &str = r#"{"status":"error","error":"no paper","retry":false}"#;

    // conforms: D35 D39
    #[test]
    fn turn_that_succeeds_exits_with_0_and_any_other_end_of_it_is_a_failure_that_is_tried_again() {
        assert!(matches!(verdict(&Ending::Exited(Exit::Code(0)), OK), Verdict::Done(_)));
        assert_eq!(failed(1, OK), ("plugin_error".to_owned(), Retryable::Yes));
        let killed = verdict(&Ending::Exited(Exit::Signal(9)), OK);
        assert!(matches!(killed, Verdict::Failed(failure) if failure.retryable == Retryable::Yes));
    }

    #[test]
    fn error_that_a_plugin_tells_is_honoured_however_it_exits() {
        for code in [0, 1] {
            assert_eq!(failed(code, ERROR), ("plugin_error".to_owned(), Retryable::Yes));
            assert_eq!(failed(code, FINAL), ("plugin_retry_false".to_owned(), Retryable::No));
        }
    }

    // conforms: D3
    #[test]
    fn exit_code_78_makes_a_failure_final_and_means_nothing_else() {
        for stdout in [OK, ERROR, FINAL, "", "garbage"] {
            assert_eq!(failed(78, stdout), ("exit_code_78".to_owned(), Retryable::No));
        }
        for code in (1..=255).filter(|code| *code != 78) {
            for stdout in [OK, ERROR] {
                assert_eq!(failed(code, stdout), ("plugin_error".to_owned(), Retryable::Yes));
            }
            assert_eq!(failed(code, FINAL), ("plugin_retry_false".to_owned(), Retryable::No));
            assert_eq!(failed(code, ""), ("bad_response".to_owned(), Retryable::Yes));
        }
    }

    // conforms: D12
    #[test]
    fn no_answer_is_a_failure_whatever_the_exit_code() {
        for (code, stdout) in [(0, ""), (0, "garbage"), (1, ""), (127, "")] {
            assert_eq!(failed(code, stdout), ("bad_response".to_owned(), Retryable::Yes));
        }
    }

    #[test]
    fn output_beyond_its_limit_is_a_failure_even_if_its_beginning_is_an_answer() {
        let heard = Heard { bytes: OK.as_bytes().to_vec(), truncated: true };
        let verdict = judge(&Ending::Exited(Exit::Code(0)), &heard, Strictness::Lenient, &Mask::default());
        assert!(matches!(verdict, Verdict::Failed(failure) if failure.reason == "output_overflow"));
    }

    #[test]
    fn answer_that_comes_after_the_time_is_over_counts_no_more() {
        let verdict = verdict(&Ending::TimeOver, OK);
        assert!(matches!(verdict, Verdict::Failed(failure) if failure.reason == "timeout"));
    }
}
