//! The report as one page that needs nothing else: whether the bounds hold, plots, the tables.

use std::fmt::Write as _;

use reporting::{Page, Plot, escaped, pairs};

use super::{Report, cells};
use crate::work::Latency;

const OURS: (&str, &str) = ("#2b6cb0", "longhaul");
const RAW: (&str, &str) = ("#8a6100", "the raw database with the same rows");

/// The page.
pub fn page(report: &Report<'_>) -> String {
    let missed = report.lines().filter(|(_, line)| !line.holds()).count();
    let (word, colour) = match missed {
        0 if report.interrupted.is_some() => ("interrupted".to_owned(), "void"),
        0 => ("every bound holds".to_owned(), "green"),
        1 => ("a bound is missed".to_owned(), "red"),
        _ => (format!("{missed} bounds are missed"), "red"),
    };
    let mut page = Page::new("longhaul bench", &word, colour);
    page.push(&format!("<p>{}</p>\n", escaped(&report.told())));
    plots(&mut page, report);
    page.push(&figures(report));
    page.push(&works(report));
    page.markup()
}

fn plots(page: &mut Page, report: &Report<'_>) {
    let named = |level: &str, what: &str| escaped(&format!("{level}: {}", what.replace('`', "")));
    let rates: Vec<_> = report
        .works()
        .map(|(level, work)| {
            let raw = work.raw.as_ref().map(|raw| raw.per_second);
            (named(level.name(), &work.what), work.per_second, raw)
        })
        .collect();
    if !rates.is_empty() {
        page.plot("Units of work per second", &[OURS, RAW], &pairs(&rates));
    }
    let latencies: Vec<_> = report
        .works()
        .filter_map(|(level, work)| {
            let Latency { at_once, spread } = work.latency_ms?;
            let among = if at_once == 1 { ", alone".to_owned() } else { format!(", among {at_once}") };
            let name = named(level.name(), &work.what) + &among;
            Some((name, spread.p50, Some(spread.p99)))
        })
        .collect();
    if !latencies.is_empty() {
        let key = [("#2b6cb0", "p50"), ("#8a6100", "p99")];
        page.plot("How long one takes, in milliseconds", &key, &pairs(&latencies));
    }
    let costs: Vec<_> = report
        .works()
        .filter_map(|(level, work)| {
            let raw = work.raw.as_ref().map(|raw| raw.bytes_each);
            Some((named(level.name(), &work.what), work.bytes_each?, raw))
        })
        .collect();
    if !costs.is_empty() {
        page.plot("Bytes in the store for each", &[OURS, RAW], &pairs(&costs));
    }
    growth(page, report);
}

fn growth(page: &mut Page, report: &Report<'_>) {
    let points: Vec<_> = report.growth().collect();
    if points.is_empty() {
        return;
    }
    let names: Vec<String> = points.iter().map(|point| format!("{} records", point.records)).collect();
    let most = points.iter().flat_map(|point| [point.job_ms, point.raw_ms]).fold(0.0, f64::max);
    let mut plot = Plot::steps(&names, most, "ms per job");
    let along = || (0_u32..).map(f64::from);
    plot.line("ours", along().zip(points.iter().map(|point| point.job_ms)));
    plot.line("raw", along().zip(points.iter().map(|point| point.raw_ms)));
    page.plot("The same work beside more and more records", &[OURS, RAW], &plot.svg());
}

fn figures(report: &Report<'_>) -> String {
    let mut table = "<h2>Figures and bounds</h2>\n<table>\n".to_owned();
    table.push_str(
        "<tr><td>level</td><td>figure</td><td>longhaul</td><td>beside it</td><td>value</td><td>must be</td><td></td></tr>\n",
    );
    for (level, line) in report.lines() {
        let _ = writeln!(
            table,
            "<tr><td>{}</td><td>{}</td><td class=\"count\">{}</td><td class=\"count\">{}</td><td class=\"count\">{:.3}</td><td>{}</td><td>{}</td></tr>",
            level.name(),
            escaped(&line.what),
            escaped(&line.measured),
            escaped(&line.against),
            line.figure,
            line.bound,
            line.verdict()
        );
    }
    table.push_str("</table>\n");
    table
}

fn works(report: &Report<'_>) -> String {
    let mut table = "<h2>Kinds of work</h2>\n<table>\n".to_owned();
    table.push_str(
        "<tr><td>work</td><td>per second</td><td>latency: at once</td><td>p50 ms</td><td>p95 ms</td><td>p99 ms</td><td>CPU ms each</td><td>bytes each</td>\
         <td>raw: per second</td><td>CPU ms each</td><td>bytes each</td></tr>\n",
    );
    for (level, work) in report.works() {
        let cells = cells(work).map(|cell| format!("<td class=\"count\">{cell}</td>")).concat();
        let _ = writeln!(table, "<tr><td>{}: {}</td>{cells}</tr>", level.name(), escaped(&work.what));
    }
    table.push_str("</table>\n");
    table
}
