//! The report as one page that needs nothing else: a verdict, plots, the table, what should not be.

use std::fmt::Write as _;

use super::Report;
use super::plot::{Plot, bars, count_as};
use crate::drill::Verdict;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2rem auto; padding: 0 1rem; color: #1d2733; background: #fff }
h1 { font-size: 1.4rem; margin-bottom: .2rem } h2 { font-size: 1.05rem; margin: 2rem 0 .3rem } p { margin: .3rem 0 }
.verdict { display: inline-block; padding: .1rem .6rem; border-radius: .3rem; color: #fff }
.green { background: #1a7f4b } .red { background: #b3261e } .void { background: #8a6100 }
svg { width: 100%; height: auto; display: block } svg text { font-size: 11px; fill: #57636f }
.value, .name { text-anchor: end } .time { text-anchor: middle } .unit { font-weight: 600 }
.grid { stroke: #e4e8ec } polyline { fill: none; stroke-width: 2 }
.accepted { stroke: #2b6cb0 } .over { stroke: #1a7f4b } .kills { stroke: #b3261e } .others { stroke: #8a6100 }
circle.recovery { fill: #b3261e; fill-opacity: .55 } rect { fill: #2b6cb0 }
rect.completed { fill: #1a7f4b } rect.failed, rect.unavailable { fill: #b3261e } rect.cancelled, rect.expired { fill: #8a6100 } rect.open { fill: #57636f }
.key span { margin-right: 1.2rem } .key i { display: inline-block; width: .8rem; height: .25rem; margin-right: .35rem; vertical-align: middle }
table { border-collapse: collapse } td { padding: .1rem .9rem .1rem 0; vertical-align: top } td.count { text-align: right; font-variant-numeric: tabular-nums }
code { background: #f2f4f6; padding: .1rem .3rem; border-radius: .2rem } pre { white-space: pre-wrap; background: #f2f4f6; padding: .6rem }
@media (prefers-color-scheme: dark) { body { color: #e3e8ed; background: #14191f } .grid { stroke: #2a323b } svg text { fill: #9aa6b2 } code, pre { background: #1f262e } }
";

/// The page.
pub fn page(report: &Report<'_>) -> String {
    let (word, class) = match report.verdict {
        Verdict::Green => ("green", "green"),
        Verdict::Red => ("red", "red"),
        Verdict::Void => ("void", "void"),
    };
    let mut page = String::new();
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>longhaul drill: {word}</title><style>{STYLE}</style></head><body>\n\
         <h1>longhaul drill <span class=\"verdict {class}\">{word}</span></h1>\
         <p>{} s on {} with {} node{}, seed {}. {} kills, {} ambiguous commits, {} accepted.</p>\n",
        report.seconds,
        report.store,
        report.nodes,
        if report.nodes == 1 { "" } else { "s" },
        report.seed,
        report.figures.all_kills(),
        report.tally.ambiguous,
        report.accepted
    );
    findings(&mut page, report);
    plots(&mut page, report);
    table(&mut page, report);
    page.push_str("</body></html>\n");
    page
}

fn findings(page: &mut String, report: &Report<'_>) {
    if report.findings.is_empty() {
        return;
    }
    page.push_str("<h2>What should not be</h2>\n<pre>");
    for finding in report.findings {
        let _ = writeln!(page, "{}", escaped(&finding.to_string()));
    }
    page.push_str("</pre>\n");
}

fn plots(page: &mut String, report: &Report<'_>) {
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
    section(
        page,
        "Faults over time",
        &[("#b3261e", "rounds with a kill"), ("#8a6100", "other faults")],
        &plot.svg(),
    );

    let most = figures.recoveries.iter().map(|(_, ms)| *ms).max().unwrap_or_default();
    let mut plot = Plot::new(seconds, count_as(most), "ms");
    plot.dots("recovery", figures.recoveries.iter().map(|(at, ms)| (*at, count_as(*ms))));
    section(page, "From the start of a killed node until it answers", &[], &plot.svg());

    let mut plot = Plot::new(seconds, count_as(last.1.max(last.2)), "jobs");
    plot.line("accepted", figures.progress.iter().map(|(at, accepted, _)| (*at, count_as(*accepted))));
    plot.line("over", figures.progress.iter().map(|(at, _, over)| (*at, count_as(*over))));
    section(
        page,
        "Throughput",
        &[("#2b6cb0", "acknowledged"), ("#1a7f4b", "over, with those of pipelines")],
        &plot.svg(),
    );

    let ends: Vec<(&str, u64)> = report.history.ends().into_iter().collect();
    section(page, "Jobs by end", &[], &bars(&ends));
}

fn section(page: &mut String, title: &str, key: &[(&str, &str)], svg: &str) {
    let _ = writeln!(page, "<h2>{title}</h2>");
    if !key.is_empty() {
        page.push_str("<p class=\"key\">");
        for (colour, name) in key {
            let _ = write!(page, "<span><i style=\"background:{colour}\"></i>{name}</span>");
        }
        page.push_str("</p>\n");
    }
    let _ = writeln!(page, "{svg}");
}

fn table(page: &mut String, report: &Report<'_>) {
    page.push_str("<h2>Figures</h2>\n<table>\n");
    for (name, count, meaning) in report.rows() {
        let indent = if name.starts_with(' ') { "&nbsp;&nbsp;" } else { "" };
        let _ = writeln!(
            page,
            "<tr><td>{indent}{}</td><td class=\"count\">{count}</td><td>{meaning}</td></tr>",
            name.trim()
        );
    }
    page.push_str("</table>\n<h2>Enough to prove anything?</h2>\n<table>\n");
    for one in report.thresholds {
        let word = if one.is_met() { "enough" } else { "too few" };
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td class=\"count\">{}</td><td>{word}: {} needed</td></tr>",
            one.name, one.found, one.needed
        );
    }
    page.push_str("</table>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_was_found_is_text_and_never_markup() {
        assert_eq!(escaped("<script>&"), "&lt;script&gt;&amp;");
    }
}
