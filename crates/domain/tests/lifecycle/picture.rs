//! The picture of a job's states: the moves of the walk between four groups of states, as Mermaid and as SVG.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::walk::Walk;

/// A group of states, with its box in the picture.
struct Group {
    name: &'static str,
    title: &'static str,
    states: &'static [&'static str],
    x: u32,
    y: u32,
}

const WIDTH: u32 = 170;
const GROUPS: [Group; 4] = [
    Group { name: "Queued", title: "waits for its turn", states: &["queued"], x: 20, y: 170 },
    Group {
        name: "Active",
        title: "an attempt has it",
        states: &["dispatching", "delivered", "running"],
        x: 380,
        y: 150,
    },
    Group {
        name: "Waiting",
        title: "the attempt waits",
        states: &["awaiting_external", "awaiting_input", "blocked"],
        x: 380,
        y: 400,
    },
    Group {
        name: "Ended",
        title: "it is over",
        states: &["completed", "failed", "cancelled", "expired", "unavailable"],
        x: 740,
        y: 130,
    },
];

/// From, to, the path of the arrow, and where its label begins.
type Arrow = (&'static str, &'static str, &'static str, u32, u32);

const ARROWS: [Arrow; 9] = [
    ("Queued", "Active", "M190 190 L376 190", 240, 182),
    ("Active", "Queued", "M380 220 L194 220", 215, 236),
    ("Active", "Ended", "M550 190 L736 190", 570, 138),
    ("Ended", "Active", "M740 235 L554 235", 620, 251),
    ("Active", "Waiting", "M435 249 L435 396", 345, 330),
    ("Waiting", "Active", "M500 400 L500 253", 510, 320),
    ("Waiting", "Queued", "M380 460 C200 460 100 400 100 236", 60, 420),
    ("Waiting", "Ended", "M550 460 C730 460 825 400 825 268", 640, 480),
    ("Queued", "Ended", "M105 170 C105 40 825 40 825 126", 440, 66),
];

/// Runs and retries of what has ended go past the attempt, to those who pull.
const BACK: Arrow = ("Ended", "Queued", "M890 130 C890 -40 60 -40 60 166", 440, 16);

/// The moves between groups, each with what makes it.
fn moves(jobs: &Walk) -> BTreeMap<(&'static str, &'static str), BTreeSet<String>> {
    let group =
        |state: &str| GROUPS.iter().find(|group| group.states.contains(&state)).map(|group| group.name);
    let mut moves: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (from, to, by) in jobs.moves() {
        let state = from.split(',').next().unwrap_or_default();
        // Work that its worker keeps with reports alone has no attempt.
        let is_unmanaged = from.ends_with("never dispatched") && (state != "queued" || by == "report");
        if let (Some(from), Some(to), false) = (group(state), group(&to), is_unmanaged)
            && from != to
        {
            moves.entry((from, to)).or_default().insert(by);
        }
    }
    moves
}

pub(crate) fn mermaid(jobs: &Walk) -> String {
    let mut text = String::from("stateDiagram-v2\n    direction LR\n    [*] --> Queued: create\n");
    for group in &GROUPS {
        write_line(
            &mut text,
            &format!("    state \"{}: {}\" as {}", group.title, group.states.join(", "), group.name),
        );
    }
    for ((from, to), by) in moves(jobs) {
        let by: Vec<String> = by.into_iter().collect();
        write_line(&mut text, &format!("    {from} --> {to}: {}", by.join(", ")));
    }
    text
}

pub(crate) fn svg(jobs: &Walk) -> String {
    let moves = moves(jobs);
    let arrows = || ARROWS.iter().chain([&BACK]);
    let drawn: BTreeSet<_> = arrows().map(|(from, to, ..)| (*from, *to)).collect();
    let walked: BTreeSet<_> = moves.keys().copied().collect();
    assert_eq!(drawn, walked, "every move between groups has its arrow, and no other");
    let mut text = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-10 -20 950 540\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" \
         markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#556\"/></marker></defs>\n\
         <rect x=\"-10\" y=\"-20\" width=\"950\" height=\"540\" fill=\"#fff\"/>\n",
    );
    for (from, to, path, x, y) in arrows() {
        write_line(
            &mut text,
            &format!("<path d=\"{path}\" fill=\"none\" stroke=\"#556\" marker-end=\"url(#head)\"/>"),
        );
        for (row, words) in label(&moves[&(*from, *to)]).iter().enumerate() {
            let y = i64::from(*y) + 14 * i64::try_from(row).unwrap_or_default();
            write_line(&mut text, &format!("<text x=\"{x}\" y=\"{y}\" fill=\"#334\">{words}</text>"));
        }
    }
    for group in &GROUPS {
        draw(&mut text, group);
    }
    text.push_str("</svg>\n");
    text
}

/// The words of an arrow, two in a line.
fn label(by: &BTreeSet<String>) -> Vec<String> {
    let by: Vec<&str> = by.iter().map(String::as_str).collect();
    by.chunks(2).map(|words| words.join(", ")).collect()
}

fn draw(text: &mut String, group: &Group) {
    let Group { title, states, x, y, .. } = group;
    let rows = u32::try_from(states.len()).unwrap_or_default();
    let height = 44 + 18 * rows;
    write_line(
        text,
        &format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"#eef3fb\" stroke=\"#456\"/>"
        ),
    );
    write_line(text, &format!("<text x=\"{}\" y=\"{}\" fill=\"#667\">{title}</text>", x + 12, y + 20));
    for (row, state) in (0..).zip(*states) {
        let (x, y) = (x + 12, y + 42 + 18 * row);
        write_line(
            text,
            &format!("<text x=\"{x}\" y=\"{y}\" font-weight=\"bold\" fill=\"#123\">{state}</text>"),
        );
    }
}

fn write_line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a string takes every write");
}
