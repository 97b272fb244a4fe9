//! What came of a drill: a table, JSON, and a page with plots.

mod page;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use reporting::Conditions;
use serde_json::{Value, json};

use crate::drill::Verdict;
use crate::figures::{Figures, Threshold};
use crate::finding::Finding;
use crate::history::History;
use crate::oracle::Tally;

pub use page::page;

/// Everything that is reported.
pub struct Report<'a> {
    pub verdict: Verdict,
    pub seed: u64,
    pub seconds: u64,
    pub nodes: usize,
    pub store: &'static str,
    pub figures: &'a Figures,
    pub tally: &'a Tally,
    pub history: &'a History,
    pub accepted: usize,
    pub verified_records: u64,
    pub looked_for: Duration,
    pub thresholds: &'a [Threshold],
    pub findings: &'a [Finding],
    pub interrupted_after: Option<u64>,
    pub conditions: &'a Conditions,
    pub again: &'a str,
}

impl Report<'_> {
    /// The rows of the table: what, how many, and what it means.
    fn rows(&self) -> Vec<(&'static str, String, &'static str)> {
        let (figures, tally) = (self.figures, self.tally);
        let mut rows = vec![
            ("kills", figures.all_kills().to_string(), "kill -9 of a node, in all"),
            ("  in start", figures.kills_in_start.to_string(), "while it recovered from the one before"),
        ];
        if figures.at_named_points() + figures.failpoints_missed > 0 {
            let count = figures.at_named_points().to_string();
            rows.push(("  at named points", count, "it ended itself there"));
        }
        rows.push(("terminations", figures.terminations.to_string(), "SIGTERM, ended by itself"));
        if self.nodes > 1 {
            rows.push((
                "pauses past a lease",
                figures.pauses.to_string(),
                "and then it went on with old beliefs",
            ));
            rows.push(("nodes lost", figures.lost_nodes.to_string(), "with their data directory"));
            rows.push((
                "sessions ended",
                figures.sessions_ended.to_string(),
                "by the database, under the nodes",
            ));
        }
        rows.extend([
            ("service kills", figures.service_kills.to_string(), "kill -9 of the service outside"),
            (
                "attempts taken over",
                self.history.taken_over().to_string(),
                "their lease ended without a word",
            ),
            ("ambiguous commits", tally.ambiguous.to_string(), "sent, and no answer or an error"),
            ("  had happened", tally.had_happened.to_string(), "creates that the key showed to be done"),
            ("  had not", tally.had_not.to_string(), "creates that the key did then"),
            ("half requests", tally.halves.to_string(), "cut in the middle; nothing may come of them"),
            ("keys asked again", tally.repeated.to_string(), "answered the same, byte for byte"),
            ("other bodies", tally.other_bodies.to_string(), "under a used key, refused"),
            ("stale reports", tally.stale.to_string(), "of attempts that were not current, refused"),
            (
                "cancels and the like",
                tally.steered.to_string(),
                "cancels, retries, answers that were accepted",
            ),
            ("accepted", self.accepted.to_string(), "jobs and events that were acknowledged"),
            ("jobs", self.history.jobs.len().to_string(), "in the ledger, with those of pipelines"),
            ("facts", self.history.facts.to_string(), "in the ledger"),
            ("rounds", figures.rounds.to_string(), "each with a look afterwards"),
            (
                "backups restored",
                figures.backups.len().to_string(),
                "taken under load; all that was acknowledged was in them",
            ),
            (
                "  longest ms",
                figures.backups.iter().max().map_or(0, Duration::as_millis).to_string(),
                "for the backup itself",
            ),
            ("records verified", self.verified_records.to_string(), "views against their replay"),
            (
                "recovery p50 ms",
                figures.recovery(50).to_string(),
                "from the start of a node until it is ready",
            ),
            ("recovery p99 ms", figures.recovery(99).to_string(), ""),
        ]);
        // Whoever does not wait for it has not seen it.
        if self.interrupted_after.is_none() {
            rows.push((
                "calm after s",
                format!("{:.1}", figures.calm.as_secs_f64()),
                "until everything was over",
            ));
        }
        rows
    }
}

/// The table, the thresholds and the verdict.
pub fn table(report: &Report<'_>) -> String {
    let mut text = String::new();
    for (name, count, meaning) in report.rows() {
        let _ = writeln!(text, "{name:<22}{count:>10}  {meaning}");
    }
    let ends: Vec<String> =
        report.history.ends().iter().map(|(end, count)| format!("{count} {end}")).collect();
    let _ = writeln!(text, "ends: {}", ends.join(", "));
    let points: Vec<String> =
        report.figures.failpoints.iter().map(|(name, count)| format!("{count} {name}")).collect();
    if !points.is_empty() {
        let _ = writeln!(text, "named points: {}", points.join(", "));
    }
    for Threshold { name, found, needed } in report.thresholds {
        let word = if found >= needed { "enough" } else { "too few" };
        let _ = writeln!(text, "{name:<22}{found:>10}  {word}: {needed} needed in {} s", report.seconds);
    }
    text.trim_end().to_owned()
}

/// Everything for machines.
pub fn json(report: &Report<'_>) -> String {
    let rows: BTreeMap<&str, Value> = report
        .rows()
        .into_iter()
        .map(|(name, count, _)| {
            (name.trim(), count.parse::<f64>().map_or_else(|_| json!(count), |count| json!(count)))
        })
        .collect();
    let faults: Vec<Value> =
        report.figures.faults.iter().map(|(at, name)| json!([round(*at), name])).collect();
    let recoveries: Vec<Value> =
        report.figures.recoveries.iter().map(|(at, ms)| json!([round(*at), ms])).collect();
    let progress: Vec<Value> = report
        .figures
        .progress
        .iter()
        .map(|(at, accepted, over)| json!([round(*at), accepted, over]))
        .collect();
    let all = json!({
        "verdict": report.verdict,
        "interrupted_after_seconds": report.interrupted_after,
        "conditions": report.conditions,
        "again": report.again,
        "seed": report.seed,
        "seconds": report.seconds,
        "nodes": report.nodes,
        "store": report.store,
        "figures": rows,
        "ends": report.history.ends(),
        "thresholds": report.thresholds,
        "findings": report.findings,
        "looked_for_seconds": round(report.looked_for.as_secs_f64()),
        "named_points": report.figures.failpoints,
        "faults": faults,
        "recoveries_ms": recoveries,
        "progress": progress,
    });
    serde_json::to_string_pretty(&all).unwrap_or_default()
}

fn round(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}
