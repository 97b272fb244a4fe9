//! The kinds of work that a drill asks for: what is sent, and how each may end.

use std::path::Path;

use serde_json::{Value, json};

use crate::history::Job;

/// The lane that the drill's own workers pull from.
pub const LANE: &str = "drill";
/// The executors that the drill's configuration brings.
pub const SERVICE: &str = "drill-service";
pub const ZOO: &str = "drill-zoo";
pub const PLUGIN: &str = "grind";
/// The event that begins the drill's pipeline.
pub const BEGUN: &str = "drill.begun";
/// Attempts that work gets which must not end because of us: far more than it can lose.
const ENOUGH_ATTEMPTS: u32 = 1_000;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Done at once by the daemon itself.
    Noop,
    /// A command that leaves a line for each of its attempts.
    Command,
    /// A plugin that emits an event.
    Plugin,
    /// Done by the daemon itself, in a while.
    Slow,
    /// Waits for an answer.
    Ask,
    /// Fails until someone asks for another attempt.
    Failing,
    /// Goes on at an honest service.
    Service,
    /// Goes on at a service that misbehaves.
    Zoo,
    /// Waits for a worker that pulls it.
    Pulled,
    /// An event that begins a pipeline.
    Event,
}

impl Kind {
    /// All of them, with how often each is asked for.
    pub const ALL: [(u64, Self); 10] = [
        (30, Self::Noop),
        (9, Self::Command),
        (5, Self::Plugin),
        (5, Self::Slow),
        (4, Self::Ask),
        (5, Self::Failing),
        (10, Self::Service),
        (6, Self::Zoo),
        (10, Self::Pulled),
        (6, Self::Event),
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Command => "command",
            Self::Plugin => "plugin",
            Self::Slow => "slow",
            Self::Ask => "ask",
            Self::Failing => "failing",
            Self::Service => "service",
            Self::Zoo => "zoo",
            Self::Pulled => "pulled",
            Self::Event => "event",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().map(|(_, kind)| kind).find(|kind| kind.name() == name)
    }

    /// Where it is asked for.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Event => "/events",
            Self::Noop
            | Self::Command
            | Self::Plugin
            | Self::Slow
            | Self::Ask
            | Self::Failing
            | Self::Service
            | Self::Zoo
            | Self::Pulled => "/jobs",
        }
    }

    /// The states that it may end in when nobody asked to stop it.
    pub const fn may_end(self) -> &'static [&'static str] {
        match self {
            Self::Noop
            | Self::Command
            | Self::Plugin
            | Self::Slow
            | Self::Ask
            | Self::Service
            | Self::Pulled => &["completed"],
            // It is tried once: an attempt that dies with its node makes it unavailable.
            Self::Failing => &["failed", "completed", "unavailable"],
            Self::Zoo => &["completed", "failed", "expired", "unavailable"],
            Self::Event => &[],
        }
    }

    /// Whether it may end so when it was asked to stop. What goes on outside may refuse that, and the time for it may be over first: then it ends
    /// as any other.
    pub fn may_end_stopped(self, end: &str, job: &Job) -> bool {
        // Whoever pulled it may fail before it hears of that, and nobody tries again what shall stop.
        end == "cancelled" || (self == Self::Pulled && end == "failed" && job.cancel_requested)
    }

    /// What is sent for it. The key is in the body too, so that whoever reads the store finds it.
    pub fn body(self, key: &str, detail: &Detail, effects: &Path) -> Value {
        let mut job = json!({
            "title": format!("drill: {}", self.name()),
            "source_kind": "drill",
            "source_id": key,
            "retry": { "max_attempts": ENOUGH_ATTEMPTS, "backoff_seconds": 0, "max_backoff_seconds": 1 },
        });
        let (executor, input) = match self {
            Self::Noop => ("noop", json!({ "drill": key, "n": u64::MAX })),
            Self::Command => {
                let script =
                    "echo $LONGHAUL_JOB_ID $LONGHAUL_ATTEMPT_NUMBER >> \"$0\"; sleep \"$1\"; echo done";
                let seconds = format!("0.{:02}", detail.tenths.min(9) * 5);
                ("command", json!({ "argv": ["sh", "-c", script, effects, seconds] }))
            }
            Self::Plugin => (
                PLUGIN,
                json!({ "command": "handle", "event": { "type": "drill.asked", "payload": { "drill": key } } }),
            ),
            Self::Slow => ("slow", json!({ "seconds": 1 + detail.tenths / 6 })),
            Self::Ask => ("slow", json!({ "seconds": 0, "ask": "which way?" })),
            Self::Failing => {
                job["retry"]["max_attempts"] = json!(1);
                ("command", json!({ "argv": ["sh", "-c", "test $LONGHAUL_ATTEMPT_NUMBER -ge 2"] }))
            }
            Self::Service => (SERVICE, json!({ "seconds": seconds_of(detail), "result": { "drill": key } })),
            Self::Zoo => (
                ZOO,
                json!({ "seconds": seconds_of(detail), "result": { "drill": key }, "manner": detail.manner }),
            ),
            Self::Pulled => {
                job["lane"] = json!(LANE);
                job["input"] = json!({ "drill": key });
                return job;
            }
            Self::Event => return json!({ "type": BEGUN, "payload": { "drill": key } }),
        };
        job["executor"] = json!(executor);
        job["input"] = input;
        job
    }
}

/// What differs within a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// How long it takes, more or less.
    pub tenths: u64,
    /// How a service misbehaves.
    pub manner: &'static str,
}

fn seconds_of(detail: &Detail) -> f64 {
    f64::from(u32::try_from(detail.tenths).unwrap_or(u32::MAX)) / 10.0
}

/// How the service of the zoo misbehaves: all that is over in bounded time without a callback.
pub const MANNERS: [&str; 24] = [
    "never_ends",
    "flips",
    "forgets",
    "forgets_now_and_then",
    "lies_about_progress",
    "regresses",
    "hostile_retry_after",
    "huge_body",
    "gzip_bomb",
    "drips",
    "hangs",
    "closes",
    "garbage",
    "redirects_to_private",
    "redirect_loop",
    "wrong_length",
    "error_500",
    "rate_limited_429",
    "overloaded_503",
    "refuses_cancel",
    "cancel_unreachable",
    "cancels_late",
    "accepts_then_drops",
    "result_on_second_try",
];
