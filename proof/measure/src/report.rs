//! What came of a bench: tables in Markdown, ready to paste; JSON; and a page with plots.

mod page;

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use reporting::Conditions;
use serde_json::{Value, json};

use crate::bench::Measured;
use crate::level::Level;
use crate::levels::growth::Point;
use crate::line::{Bound, Line};
use crate::work::{Raw, Spread, Work};

pub use page::page;

/// Everything that is reported.
pub struct Report<'a> {
    pub store: &'static str,
    pub seconds: u64,
    pub took: Duration,
    /// Of the bare disk, if the store is on it.
    pub syncs_per_second: Option<f64>,
    pub measured: &'a [(Level, Measured)],
    pub interrupted: Option<Level>,
    pub conditions: &'a Conditions,
}

impl Report<'_> {
    fn lines(&self) -> impl Iterator<Item = (Level, &Line)> {
        self.measured.iter().flat_map(|(level, measured)| measured.lines.iter().map(|line| (*level, line)))
    }

    fn works(&self) -> impl Iterator<Item = (Level, &Work)> {
        self.measured.iter().flat_map(|(level, measured)| measured.works.iter().map(|work| (*level, work)))
    }

    fn growth(&self) -> impl Iterator<Item = &Point> {
        self.measured.iter().flat_map(|(_, measured)| &measured.growth)
    }

    /// What was measured on what.
    fn told(&self) -> String {
        let bare_disk = self.syncs_per_second.map_or_else(String::new, |syncs| {
            format!("; bare disk: {syncs:.0} fdatasync/s of one appended 4 KiB page")
        });
        let told = format!("{}, {} s{bare_disk}", self.conditions.told(self.store), self.took.as_secs());
        std::iter::once(&told)
            .chain(&self.conditions.notes)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(". Note: ")
    }
}

/// Markdown.
pub fn table(report: &Report<'_>) -> String {
    let mut text = format!("{}\n", report.told());
    if report.lines().next().is_some() {
        text.push_str("\n| level | figure | longhaul | beside it | ratio or value | must be | |\n");
        text.push_str("| --- | --- | ---: | ---: | ---: | ---: | --- |\n");
    }
    for (level, line) in report.lines() {
        let Line { what, measured, against, figure, bound } = line;
        let (level, verdict) = (level.name(), line.verdict());
        let _ = writeln!(
            text,
            "| {level} | {what} | {measured} | {against} | {figure:.3} | {bound} | {verdict} |"
        );
    }
    if report.works().next().is_some() {
        text.push_str(
            "\n| level | work | per second | latency: at once | p50 ms | p95 ms | p99 ms | CPU ms each | bytes each | raw: per second | CPU ms each | bytes each |\n",
        );
        text.push_str(
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for (level, work) in report.works() {
            let _ = writeln!(text, "| {} | {} | {} |", level.name(), work.what, cells(work).join(" | "));
        }
    }
    if report.growth().next().is_some() {
        text.push_str(
            "\n| records | ms per job | CPU ms per job | ms per read | ms per list | raw: ms per job |\n",
        );
        text.push_str("| ---: | ---: | ---: | ---: | ---: | ---: |\n");
        for point in report.growth() {
            let Point { records, job_ms, cpu_ms, read_ms, list_ms, raw_ms } = point;
            let _ = writeln!(
                text,
                "| {records} | {job_ms:.3} | {cpu_ms:.3} | {read_ms:.3} | {list_ms:.3} | {raw_ms:.3} |"
            );
        }
    }
    text
}

/// The figures of a kind of work, as they are shown.
fn cells(work: &Work) -> [String; 10] {
    let shown =
        |value: Option<f64>, digits: usize| value.map_or_else(String::new, |it| format!("{it:.digits$}"));
    let spread = |of: fn(&Spread) -> f64| shown(work.latency_ms.as_ref().map(|it| of(&it.spread)), 2);
    let raw = |of: fn(&Raw) -> f64, digits| shown(work.raw.as_ref().map(of), digits);
    [
        shown(Some(work.per_second), 0),
        work.latency_ms.map_or_else(String::new, |latency| latency.at_once.to_string()),
        spread(|spread| spread.p50),
        spread(|spread| spread.p95),
        spread(|spread| spread.p99),
        shown(work.cpu_ms_each, 3),
        shown(work.bytes_each, 0),
        raw(|raw| raw.per_second, 0),
        raw(|raw| raw.cpu_ms_each, 3),
        raw(|raw| raw.bytes_each, 0),
    ]
}

/// Everything for machines.
pub fn json(report: &Report<'_>) -> Result<String> {
    let lines: Vec<Value> = report
        .lines()
        .map(|(level, line)| {
            let bound = match line.bound {
                Bound::AtLeast(bound) => json!({ "at_least": bound }),
                Bound::Below(bound) => json!({ "below": bound }),
                Bound::AtMost(bound) => json!({ "at_most": bound }),
                Bound::Told => Value::Null,
            };
            let holds = (!bound.is_null()).then(|| line.holds());
            json!({
                "level": level,
                "what": line.what,
                "longhaul": line.measured,
                "beside_it": line.against,
                "figure": line.figure,
                "must_be": bound,
                "holds": holds,
            })
        })
        .collect();
    let mut works = Vec::new();
    for (level, work) in report.works() {
        let mut work = serde_json::to_value(work)?;
        work["level"] = json!(level);
        works.push(work);
    }
    let all = json!({
        "conditions": report.conditions,
        "interrupted_in": report.interrupted,
        "store": report.store,
        "seconds": report.seconds,
        "took_seconds": report.took.as_secs_f64(),
        "fdatasyncs_per_second": report.syncs_per_second,
        "missed": report.lines().filter(|(_, line)| !line.holds()).count(),
        "figures": lines,
        "works": works,
        "growth": report.growth().collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&all)?)
}
