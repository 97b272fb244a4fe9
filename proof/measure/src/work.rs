//! What is measured of one kind of work: how fast it goes, how long one of it takes, what it costs, and the raw database beside it.

use std::time::Duration;

use serde::Serialize;

use crate::line::percentile;

/// One kind of work.
#[derive(Clone, Debug, Serialize)]
pub struct Work {
    /// In words.
    pub what: String,
    /// How many there were.
    pub count: usize,
    /// How many there were in a second.
    pub per_second: f64,
    /// How long one took.
    pub latency_ms: Option<Latency>,
    /// On a processor, for each: of the daemon and all that it started.
    pub cpu_ms_each: Option<f64>,
    /// In the store, for each.
    pub bytes_each: Option<f64>,
    /// The raw database doing the same rows.
    pub raw: Option<Raw>,
}

/// The raw database doing the same rows.
#[derive(Clone, Debug, Serialize)]
pub struct Raw {
    /// Units of work in a second.
    pub per_second: f64,
    /// Facts in one transaction, as with ours.
    pub facts_per_transaction: f64,
    /// On a processor, for each: of the client, not of a server.
    pub cpu_ms_each: f64,
    /// In the database, for each.
    pub bytes_each: f64,
    /// How long one transaction took.
    pub transaction_ms: Option<Spread>,
}

impl Raw {
    /// How large its transactions were, in words.
    pub fn facts(&self) -> String {
        let facts = self.facts_per_transaction.round();
        if facts > 1.0 { format!("{facts:.0} facts") } else { "1 fact".to_owned() }
    }
}

/// How long one took, among so many at the same time: seldom as many as make the most in a second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// How many were under way: 1 is one alone.
    pub at_once: usize,
    /// How long most of them took.
    #[serde(flatten)]
    pub spread: Spread,
}

/// How long most of them took, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// Half of them.
    pub p50: f64,
    /// All but one in twenty.
    pub p95: f64,
    /// All but one in a hundred.
    pub p99: f64,
}

impl Spread {
    /// Read among so many at the same time.
    pub fn among(self, at_once: usize) -> Latency {
        Latency { at_once, spread: self }
    }

    /// None of nothing.
    pub fn of(mut seconds: Vec<f64>) -> Option<Self> {
        if seconds.is_empty() {
            return None;
        }
        let mut at = |percent| percentile(&mut seconds, percent) * 1_000.0;
        Some(Self { p50: at(50), p95: at(95), p99: at(99) })
    }
}

/// A count as a figure for people.
#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
pub fn count(number: usize) -> f64 {
    number as f64
}

/// So many in this time, by the second.
pub fn per_second(number: usize, time: Duration) -> f64 {
    count(number) / time.as_secs_f64().max(f64::EPSILON)
}

/// What each of so many took of this, in milliseconds.
pub fn ms_each(time: Duration, number: usize) -> f64 {
    time.as_secs_f64() * 1_000.0 / count(number.max(1))
}
