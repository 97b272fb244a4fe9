//! The command of one attempt: its words, its directory, its whole environment, and what is on its standard input.
//!
//! An input that names no command is refused here for good, before anything is started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use domain::job::Retryable;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::sweep::{ATTEMPT_ID, DAEMON_ID, daemon_id};
use super::{ProcessHost, ProcessSettings, Program};
use engine::{Assignment, Failure};

const HOME: &str = "HOME";
const JOB_ID: &str = "LONGHAUL_JOB_ID";
const ATTEMPT_NUMBER: &str = "LONGHAUL_ATTEMPT_NUMBER";
/// Names that no setting and no job may give.
const OURS: &str = "LONGHAUL_";

/// Everything that the supervisor needs to start a command.
#[derive(Debug)]
pub(super) struct CommandLine {
    /// The program and its arguments.
    pub argv: Vec<String>,
    pub working_directory: PathBuf,
    /// All of it: nothing is inherited.
    pub environment: BTreeMap<OsString, OsString>,
    pub stdin: Vec<u8>,
    /// Whether another attempt may help after an end that the command brought on itself: an exit code, a crash, a time limit. An end
    /// that came from outside is always worth one.
    pub own_end: Retryable,
}

/// What a job says for itself.
#[derive(Default)]
struct Asked {
    argv: Vec<String>,
    cwd: Option<PathBuf>,
    env: BTreeMap<String, String>,
    stdin: Vec<u8>,
    own_end: Option<Retryable>,
}

impl CommandLine {
    /// The command of this attempt, or why there is none.
    pub(super) fn of(
        host: &ProcessHost,
        settings: &ProcessSettings,
        assignment: &Assignment,
    ) -> Result<Self, Failure> {
        host.check_sandbox(settings)?;
        let asked = match &settings.program {
            Program::Fixed(argv) => {
                Asked { argv: argv.clone(), stdin: assignment.input.clone(), ..Asked::default() }
            }
            Program::FromJob => {
                Asked::read(&assignment.input).map_err(|why| Failure::permanent("invalid_input", why))?
            }
        };
        asked.check().map_err(|why| Failure::permanent("invalid_input", why))?;
        let working_directory = match asked.cwd {
            Some(cwd) => settings.working_directory.join(cwd),
            None => settings.working_directory.clone(),
        };
        if !working_directory.is_dir() {
            let why = format!("{} is not a directory", working_directory.display());
            return Err(Failure::permanent("working_directory_missing", why));
        }
        let mut environment = BTreeMap::new();
        for name in &settings.inherited {
            if let Some(value) = std::env::var_os(name) {
                environment.insert(OsString::from(name), value);
            }
        }
        // The home of the daemon's user is not that of another.
        if let Some(home) = settings.run_as.as_ref().and_then(|user| user.home.clone())
            && environment.contains_key(OsStr::new(HOME))
        {
            environment.insert(HOME.into(), home.into());
        }
        for (name, value) in settings.environment.iter().chain(&asked.env) {
            environment.insert(name.into(), value.into());
        }
        environment.retain(|name, _| !name.to_string_lossy().starts_with(OURS));
        for (name, value) in [
            (JOB_ID, assignment.job.id.as_str()),
            (ATTEMPT_ID, assignment.attempt_id.as_str()),
            (ATTEMPT_NUMBER, &assignment.attempt_number.to_string()),
        ] {
            environment.insert(name.into(), value.into());
        }
        environment.extend(settings.own.iter().map(|(name, value)| (name.into(), value.into())));
        environment.insert(DAEMON_ID.into(), daemon_id(&host.data_dir).into());
        Ok(Self {
            argv: asked.argv,
            working_directory,
            environment,
            stdin: asked.stdin,
            own_end: asked.own_end.unwrap_or_else(|| match settings.program {
                // The operator says how often it is tried.
                Program::Fixed(_) => Retryable::Yes,
                Program::FromJob if assignment.job.spec.retry_requested => Retryable::Yes,
                Program::FromJob => Retryable::No,
            }),
        })
    }
}

impl Asked {
    fn read(input: &[u8]) -> Result<Self, String> {
        let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(input).map_err(
            |_| "the input must be an object with an argv, and may have cwd, env, stdin and final_exit",
        )?;
        let mut asked = Self::default();
        for (name, value) in fields {
            match name.as_str() {
                "argv" => asked.argv = field(&value, "argv must be a list of strings")?,
                "cwd" => asked.cwd = Some(field(&value, "cwd must be a string")?),
                "env" => asked.env = field(&value, "env must hold strings by name")?,
                "stdin" => asked.stdin = value.get().as_bytes().to_vec(),
                "final_exit" => {
                    let is_final: bool = field(&value, "final_exit must be true or false")?;
                    asked.own_end = Some(if is_final { Retryable::No } else { Retryable::Yes });
                }
                other => {
                    return Err(format!(
                        "{other:?} is not known; known are argv, cwd, env, stdin and final_exit"
                    ));
                }
            }
        }
        Ok(asked)
    }

    /// What the operating system cannot be given.
    fn check(&self) -> Result<(), String> {
        if self.argv.first().is_none_or(String::is_empty) {
            return Err("argv must begin with the name of a program".to_owned());
        }
        let cwd = self.cwd.iter().any(|cwd| cwd.as_os_str().as_encoded_bytes().contains(&0));
        if cwd || self.argv.iter().any(|word| word.contains('\0')) {
            return Err("argv and cwd cannot hold a NUL character".to_owned());
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(format!("{name:?} in env cannot be a variable"));
            }
            if name.starts_with(OURS) {
                return Err(format!("{name:?} in env: names that begin with {OURS} are set by the daemon"));
            }
        }
        Ok(())
    }
}

fn field<T: DeserializeOwned>(value: &RawValue, told: &str) -> Result<T, String> {
    serde_json::from_str(value.get()).map_err(|_| told.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Asked;

    fn refusal(input: &str) -> String {
        match Asked::read(input.as_bytes()).and_then(|asked| asked.check()) {
            Ok(()) => panic!("{input} was taken"),
            Err(why) => why,
        }
    }

    #[test]
    fn input_that_names_no_command_is_refused_with_the_reason() {
        for (input, why) in [
            ("null", "the input must be an object"),
            ("[\"ls\"]", "the input must be an object"),
            ("{}", "argv must begin"),
            ("{\"argv\":[]}", "argv must begin"),
            ("{\"argv\":[\"\"]}", "argv must begin"),
            ("{\"argv\":\"ls\"}", "argv must be a list"),
            ("{\"argv\":[1]}", "argv must be a list"),
            ("{\"argv\":[\"l\\u0000s\"]}", "cannot hold a NUL"),
            ("{\"argv\":[\"ls\"],\"cwd\":1}", "cwd must be"),
            ("{\"argv\":[\"ls\"],\"env\":[]}", "env must hold"),
            ("{\"argv\":[\"ls\"],\"env\":{\"A=B\":\"\"}}", "cannot be a variable"),
            ("{\"argv\":[\"ls\"],\"env\":{\"LONGHAUL_DATA_DIR\":\"/\"}}", "set by the daemon"),
            ("{\"argv\":[\"ls\"],\"shell\":true}", "is not known"),
            ("{\"argv\":[\"ls\"],\"final_exit\":1}", "must be true or false"),
        ] {
            let refusal = refusal(input);
            assert!(refusal.contains(why), "{input}: {refusal}");
        }
    }

    #[test]
    fn stdin_of_a_job_stays_as_it_was_written() {
        let asked = Asked::read(br#"{"argv":["cat"],"stdin":{"n":18446744073709551617.50}}"#).unwrap();
        assert_eq!(asked.stdin, br#"{"n":18446744073709551617.50}"#);
    }
}
