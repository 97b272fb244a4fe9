//! What a bench measures, from the disk upwards.

use serde::Serialize;

/// One level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Jobs through `execute`, in this process.
    Store,
    /// The daemon over HTTP.
    Http,
    /// What runs a job: built in, a command, a plugin, a service that answers at once.
    Executors,
    /// Work that goes on at a service, and is asked about.
    Operations,
    /// Events that start runs.
    Pipelines,
    /// The same work beside more and more records.
    Growth,
    /// A daemon with nothing to do.
    Idle,
    /// From the start of the process until it answers.
    Start,
}

impl Level {
    /// In the order in which they are measured, each with its share of the time.
    pub const ALL: [(Self, u32); 8] = [
        (Self::Store, 24),
        (Self::Http, 24),
        (Self::Executors, 20),
        (Self::Operations, 14),
        (Self::Pipelines, 10),
        (Self::Growth, 14),
        (Self::Idle, 10),
        (Self::Start, 4),
    ];

    /// As it is written on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Http => "http",
            Self::Executors => "executors",
            Self::Operations => "operations",
            Self::Pipelines => "pipelines",
            Self::Growth => "growth",
            Self::Idle => "idle",
            Self::Start => "start",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.map(|(level, _)| level).into_iter().find(|level| level.name() == name)
    }
}
