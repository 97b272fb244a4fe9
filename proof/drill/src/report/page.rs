//! The report as one page that needs nothing else: a verdict, plots, the table, what should not be.

use std::fmt::Write as _;

use reporting::{Page, Plot, bars, count_as, escaped};

use super::Report;
use crate::drill::Verdict;

/// The page.
pub fn page(report: &Report<'_>) -> String {
    let word = match report.verdict {
        Verdict::Green => "green",
        Verdict::Red => "red",
        Verdict::Void => "void",
    };
    let mut page = Page::new("longhaul drill", word, word);
    page.push(&format!(
        "<p>{} s on {} with {} node{}, seed {}. {} kills, {} ambiguous commits, {} accepted.</p>\n",
        report.seconds,
        report.store,
        report.nodes,
        if report.nodes == 1 { "" } else { "s" },
        report.seed,
        report.figures.all_kills(),
        report.tally.ambiguous,
        report.accepted
    ));
    page.push(&format!(
        "<p>{}. Again with: <code>{}</code></p>\n",
        escaped(&report.conditions.told(report.store)),
        escaped(report.again)
    ));
    for note in &report.conditions.notes {
        page.push(&format!("<p><b>{}</b></p>\n", escaped(note)));
    }
    findings(&mut page, report);
    plots(&mut page, report);
    page.push(&table(report));
    page.markup()
}

fn findings(page: &mut Page, report: &Report<'_>) {
    if report.findings.is_empty() {
        return;
    }
    page.push("<h2>What should not be</h2>\n<pre>");
    for finding in report.findings {
        page.push(&format!("{}\n", escaped(&finding.to_string())));
    }
    page.push("</pre>\n");
}

fn plots(page: &mut Page, report: &Report<'_>) {
    let figures = report.figures;
    let last = figures.progress.last().copied().unwrap_or_default();
    let seconds = last.0;

    let is_kill = |name: &str| {
        name.starts_with("kill") && name != "kill service" || name == "failpoint" || name == "lose node"
    };
    let (kills, others): (Vec<_>, Vec<_>) = figures.faults.iter().partition(|(_, name)| is_kill(name));
    let rising = |faults: &[&(f64, &str)]| {
        faults.iter().zip(1..).map(|((at, _), count)| (*at, count_as(count))).collect::<Vec<_>>()
    };
    let (kills, others) = (rising(&kills), rising(&others));
    let most = count_as(kills.len().max(others.len()) as u64);
    let mut plot = Plot::new(seconds, most, "faults");
    plot.line("kills", kills.into_iter());
    plot.line("others", others.into_iter());
    page.plot(
        "Faults over time",
        &[("#b3261e", "rounds with a kill"), ("#8a6100", "other faults")],
        &plot.svg(),
    );

    let most = figures.recoveries.iter().map(|(_, ms)| *ms).max().unwrap_or_default();
    let mut plot = Plot::new(seconds, count_as(most), "ms");
    plot.dots("recovery", figures.recoveries.iter().map(|(at, ms)| (*at, count_as(*ms))));
    page.plot("From the start of a killed node until it answers", &[], &plot.svg());

    let mut plot = Plot::new(seconds, count_as(last.1.max(last.2)), "jobs");
    plot.line("accepted", figures.progress.iter().map(|(at, accepted, _)| (*at, count_as(*accepted))));
    plot.line("over", figures.progress.iter().map(|(at, _, over)| (*at, count_as(*over))));
    page.plot(
        "Throughput",
        &[("#2b6cb0", "acknowledged"), ("#1a7f4b", "over, with those of pipelines")],
        &plot.svg(),
    );

    let ends: Vec<(&str, u64)> = report.history.ends().into_iter().collect();
    page.plot("Jobs by end", &[], &bars(&ends));
}

fn table(report: &Report<'_>) -> String {
    let mut table = "<h2>Figures</h2>\n<table>\n".to_owned();
    for (name, count, meaning) in report.rows() {
        let indent = if name.starts_with(' ') { "&nbsp;&nbsp;" } else { "" };
        let _ = writeln!(
            table,
            "<tr><td>{indent}{}</td><td class=\"count\">{count}</td><td>{meaning}</td></tr>",
            name.trim()
        );
    }
    table.push_str("</table>\n<h2>Enough to prove anything?</h2>\n<table>\n");
    for one in report.thresholds {
        let word = if one.is_met() { "enough" } else { "too few" };
        let _ = writeln!(
            table,
            "<tr><td>{}</td><td class=\"count\">{}</td><td>{word}: {} needed</td></tr>",
            one.name, one.found, one.needed
        );
    }
    table.push_str("</table>\n");
    table
}
