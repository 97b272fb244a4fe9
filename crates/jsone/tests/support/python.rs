//! A Python process with the published package in it, asked one render at a time.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};

pub struct Python {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

#[derive(Debug)]
pub enum Answer {
    Result(Json),
    Error(String),
    Crash,
}

impl Python {
    /// `None` when there is no Python with the package.
    pub fn start() -> Option<Python> {
        let python = candidates().into_iter().find(has_the_package)?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/oracle.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python was there a moment ago");
        let requests = child.stdin.take().expect("stdin is piped");
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Some(Python { child, requests, answers })
    }

    /// The answer, and the names of the known differences that it may owe itself to.
    pub fn render(&mut self, template: &Json, context: &Json) -> (Answer, Vec<String>) {
        writeln!(self.requests, "{}", json!({"template": template, "context": context}))
            .expect("Python listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("Python answers");
        let mut answer: Json = serde_json::from_str(&line).expect("Python answers in JSON");
        let quirks = answer["quirks"].as_array().expect("always there").iter();
        let quirks = quirks.filter_map(|quirk| quirk.as_str().map(str::to_owned)).collect();
        if let Some(message) = answer["message"].as_str() {
            return (Answer::Error(message.to_owned()), quirks);
        }
        if answer["crash"].is_string() {
            return (Answer::Crash, quirks);
        }
        (Answer::Result(answer["result"].take()), quirks)
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn candidates() -> Vec<PathBuf> {
    if let Some(python) = std::env::var_os("JSONE_PYTHON") {
        return vec![python.into()];
    }
    let cached = std::env::home_dir().map(|home| home.join(".cache/jsone-python/bin/python"));
    cached.into_iter().chain([PathBuf::from("python3")]).collect()
}

fn has_the_package(python: &PathBuf) -> bool {
    let check = "import jsone, importlib.metadata as m; assert m.version('json-e') == '4.8.4'";
    let run = Command::new(python).args(["-c", check]).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}
