//! One piece of scripted work: what was asked for, and how it honestly stands at a time.
//!
//! Pure: the state follows from the start time and the clock, so that a restarted service needs to remember nothing else.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock::micros;
use crate::manner::{Manner, Occasion};

const MAX_SECONDS: f64 = 30.0 * 86_400.0;
const MAX_STEPS: u32 = 10_000;

/// What a start asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// How long it takes.
    #[serde(default = "one_second")]
    pub seconds: f64,
    /// In how many steps.
    #[serde(default = "five_steps")]
    pub steps: u32,
    /// How it ends.
    #[serde(default)]
    pub outcome: Outcome,
    /// What it gives when it ends well.
    #[serde(default)]
    pub result: Value,
    /// How the service answers for it.
    #[serde(default)]
    pub manner: Manner,
    /// At which request it misbehaves, if not where that manner usually does.
    #[serde(default)]
    pub at: Option<Occasion>,
    /// Which of a manner's several forms; absent means one after the other.
    #[serde(default)]
    pub variant: Option<usize>,
    /// How many bad answers before the honest ones, if not as many as that manner usually gives.
    #[serde(default)]
    pub bad_answers: Option<u32>,
    /// Where `redirects_to_private` points, if not to its own addresses.
    #[serde(default)]
    pub redirect_to: Option<String>,
    /// Who is told of the end.
    #[serde(default)]
    pub callback_url: Option<String>,
}

/// How scripted work ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Well.
    #[default]
    Done,
    /// Badly.
    Failed,
    /// By its own time limit.
    TimedOut,
}

/// Where work stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkState {
    /// Taken, not begun.
    Queued,
    /// Begun.
    Running,
    /// Over, well.
    Done,
    /// Over, badly.
    Failed,
    /// Over by its own time limit.
    TimedOut,
    /// Over because someone asked.
    Cancelled,
}

/// Work that was accepted.
#[derive(Clone, Debug)]
pub struct Work {
    /// Ours.
    pub id: String,
    /// The caller's.
    pub key: Option<String>,
    /// The start as it came.
    pub input: Value,
    /// The start as it was understood.
    pub script: Script,
    /// Microseconds since 1970.
    pub started_at: i64,
    /// Microseconds since 1970.
    pub ends_at: i64,
    /// Whether someone asked it to stop.
    pub cancel: Cancel,
    /// The service was restarted under it, and such work does not survive that here.
    pub interrupted: bool,
    /// How often it was asked about, by occasion.
    pub asked: Asked,
}

/// How far a cancel has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// Nobody asked.
    None,
    /// Accepted; it runs on until it has been asked about so many times.
    Until {
        /// The count of statuses at which it says cancelled.
        statuses: u32,
    },
    /// It has stopped.
    Stopped,
}

/// How often a piece of work was asked about. Not kept over a restart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Starts answered, repetitions included.
    pub starts: u32,
    /// Statuses answered.
    pub statuses: u32,
    /// Of these, after the end.
    pub ends: u32,
    /// Results answered.
    pub results: u32,
    /// Cancels answered.
    pub cancels: u32,
}

/// What is said about work.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Where it stands.
    pub state: WorkState,
    /// An honest one is a number of percent.
    pub percent: Value,
    /// For people.
    pub message: String,
    /// Only of work that is done.
    pub result: Option<Value>,
    /// Only of work that failed or timed out.
    pub error: Option<(&'static str, String)>,
}

impl Script {
    /// What is wrong with it, if anything.
    pub fn check(&self) -> Result<(), String> {
        if !(0.0..=MAX_SECONDS).contains(&self.seconds) {
            return Err(format!("seconds must be between 0 and {MAX_SECONDS}"));
        }
        if !(1..=MAX_STEPS).contains(&self.steps) {
            return Err(format!("steps must be between 1 and {MAX_STEPS}"));
        }
        Ok(())
    }

    /// How long it takes on a service that is so many times as fast.
    pub fn duration_micros(&self, speed: f64) -> i64 {
        let seconds = Duration::try_from_secs_f64(self.seconds / speed);
        seconds.map_or(i64::MAX / 4, |duration| micros(duration).min(i64::MAX / 4))
    }
}

impl WorkState {
    /// As it goes over the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether it is over.
    pub const fn is_over(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Done | Self::Failed | Self::TimedOut | Self::Cancelled => true,
        }
    }
}

impl Work {
    /// Where it stands, honestly.
    pub fn state(&self, now: i64) -> WorkState {
        match self.cancel {
            Cancel::Stopped => return WorkState::Cancelled,
            Cancel::Until { .. } => return WorkState::Running,
            Cancel::None => {}
        }
        if self.interrupted {
            return WorkState::Failed;
        }
        if now >= self.ends_at {
            return match self.script.outcome {
                Outcome::Done => WorkState::Done,
                Outcome::Failed => WorkState::Failed,
                Outcome::TimedOut => WorkState::TimedOut,
            };
        }
        if self.step(now) == 0 { WorkState::Queued } else { WorkState::Running }
    }

    /// What an honest service says about it.
    pub fn view(&self, now: i64) -> View {
        let state = self.state(now);
        let (step, steps) = (self.step(now), self.script.steps);
        let message = match state {
            WorkState::Queued => "waiting for its turn".to_owned(),
            WorkState::Running => format!("step {step} of {steps}"),
            WorkState::Done => format!("all {steps} steps are done"),
            WorkState::Failed | WorkState::TimedOut => "ended without a result".to_owned(),
            WorkState::Cancelled => "stopped as asked".to_owned(),
        };
        View {
            state,
            percent: json!(if state == WorkState::Done { 100 } else { step * 100 / steps }),
            message,
            result: (state == WorkState::Done).then(|| self.script.result.clone()),
            error: self.error(state),
        }
    }

    /// The steps behind it.
    fn step(&self, now: i64) -> u32 {
        let (steps, all) = (i128::from(self.script.steps), i128::from(self.ends_at - self.started_at));
        if all <= 0 {
            return self.script.steps;
        }
        let gone = i128::from(now.saturating_sub(self.started_at)).clamp(0, all);
        u32::try_from(gone * steps / all).expect("no more steps than the script has")
    }

    fn error(&self, state: WorkState) -> Option<(&'static str, String)> {
        match state {
            WorkState::Failed if self.interrupted => {
                Some(("interrupted", "the service was restarted before the work was over".to_owned()))
            }
            WorkState::Failed => Some(("work_failed", "the last step failed".to_owned())),
            WorkState::TimedOut => Some(("out_of_time", "the work ran into its own time limit".to_owned())),
            WorkState::Queued | WorkState::Running | WorkState::Done | WorkState::Cancelled => None,
        }
    }
}

impl View {
    /// The body of a status.
    pub fn body(&self, id: &str) -> Value {
        let mut body = json!({
            "id": id,
            "state": self.state.name(),
            "progress": {"percent": self.percent},
            "message": self.message,
        });
        if let Some(result) = &self.result {
            body["result"] = result.clone();
        }
        if let Some((code, message)) = &self.error {
            body["error"] = json!({"code": code, "message": message});
        }
        body
    }

    /// The same work with the opposite end.
    pub fn contradicted(mut self) -> Self {
        if self.state == WorkState::Done {
            self.state = WorkState::Failed;
            self.result = None;
            self.error = Some(("contradiction", "it had not gone well after all".to_owned()));
        } else {
            self.state = WorkState::Done;
            self.result = Some(json!({"contradiction": true}));
            self.error = None;
        }
        self
    }
}

const fn one_second() -> f64 {
    1.0
}

const fn five_steps() -> u32 {
    5
}
