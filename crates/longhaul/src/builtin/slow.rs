//! `slow`: a service that takes its time and says how it goes. For demonstrations and for trying things out.
//!
//! Input, all optional: `{"seconds": 25, "ask": "a question to be answered first", "fail": "why it fails in the end"}`.

use std::time::Duration;

use domain::Json;
use engine::{Assignment, Failure, Link, Output, Produced, Progress, Specialist};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::Producing;

const DEFAULT_SECONDS: u64 = 25;
/// A day.
const MAX_SECONDS: u64 = 86_400;
/// What it is doing, as the time goes by.
const PHASES: [&str; 4] = ["reading", "thinking", "writing", "checking"];

pub(super) struct Slow;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Asked {
    seconds: Option<u64>,
    ask: Option<String>,
    fail: Option<String>,
}

impl Specialist for Slow {
    fn produce(&self, assignment: Assignment, link: Link) -> Producing<'_> {
        Box::pin(work(assignment, link))
    }
}

async fn work(assignment: Assignment, mut link: Link) -> Produced {
    let asked: Asked = match serde_json::from_slice::<Option<Asked>>(&assignment.input) {
        Ok(asked) => asked.unwrap_or_default(),
        Err(error) => return refused(format!("the input may hold seconds, ask and fail: {error}")),
    };
    let seconds = asked.seconds.unwrap_or(DEFAULT_SECONDS);
    if seconds > MAX_SECONDS {
        return refused(format!("seconds may be at most {MAX_SECONDS}"));
    }
    let answer = assignment.answers.last();
    if let (Some(question), None) = (&asked.ask, answer) {
        return Produced::AwaitingInput { question: json!(question).to_string().into_bytes() };
    }
    for done in 0..seconds {
        link.tell(progress(done, seconds));
        tokio::select! {
            _ = link.stopped() => return Produced::Stopped,
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
    if let Some(why) = asked.fail {
        return Produced::Failed(Failure::permanent("asked_to_fail", why));
    }
    let answer: Option<&RawValue> = answer.and_then(|answer| serde_json::from_slice(answer).ok());
    let data = json!({ "seconds": seconds, "answer": answer, "attempt": assignment.attempt_number });
    Produced::Completed(Output {
        summary: Some(format!("took {seconds} seconds")),
        data: Some(data.to_string().into_bytes()),
        ..Output::default()
    })
}

fn progress(done: u64, of: u64) -> Progress {
    let share = usize::try_from(done * PHASES.len() as u64 / of.max(1)).unwrap_or_default();
    let phase = PHASES[share.min(PHASES.len() - 1)];
    Progress {
        progress: Json::parse(&json!({ "done": done, "of": of }).to_string()).ok(),
        note: None,
        phase: Some(phase.to_owned()),
    }
}

fn refused(message: String) -> Produced {
    Produced::Failed(Failure::permanent("invalid_input", message))
}
