//! Walks every state and every command, and holds what is accepted against the design.
//!
//! The walk is rendered into `docs/lifecycle.md`. The page is never stale: the test fails until
//! `LONGHAUL_BLESS=1` has written it. `design.rs` holds the moves that the design allows, written out as data; the
//! walk must find exactly those.

mod codes;
mod design;
mod job_commands;
mod job_situations;
mod operations;
mod page;
mod picture;
mod walk;

use std::collections::BTreeSet;
use std::path::Path;

use domain::job::JobStateName;

const BLESS: &str = "LONGHAUL_BLESS=1 cargo test -p domain --test lifecycle";

#[test]
fn the_page_shows_every_state_and_command_as_they_are() {
    assert_stored("lifecycle.md", &page::render(&walk::jobs(), &walk::operations()));
}

#[test]
fn the_picture_shows_every_move_between_groups() {
    let jobs = walk::jobs();
    assert_stored("pictures/job-states.mmd", &picture::mermaid(&jobs));
    assert_stored("pictures/job-states.svg", &picture::svg(&jobs));
}

/// Compares a generated file of `docs/` with what it must be.
#[allow(clippy::disallowed_methods, reason = "the pages lie in files; the rules read none")]
fn assert_stored(name: &str, rendered: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("LONGHAUL_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&page, rendered).expect("docs/ is writable");
    }
    let stored = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(stored == rendered, "docs/{name} is stale; run {BLESS}");
}

#[test]
fn the_walk_leaves_out_no_state_and_no_command() {
    let situations = job_situations::all();
    let states: BTreeSet<JobStateName> =
        situations.iter().map(|situation| situation.job.state.name()).collect();
    assert_eq!(states, JobStateName::ALL.into());

    let mut commands = BTreeSet::new();
    let mut reported = BTreeSet::new();
    for order in job_commands::topics().iter().flat_map(|topic| &topic.orders) {
        let command = (order.command)(&situations[0].job);
        if let domain::job::JobCommand::Report(report) = &command {
            reported.insert(report.state);
        }
        commands.insert(job_commands::name(&command));
    }
    assert_eq!(commands.len(), job_commands::NAMES);
    assert_eq!(reported, JobStateName::ALL.into());

    let statuses: BTreeSet<&str> =
        operations::situations().iter().map(|situation| situation.operation.status().as_str()).collect();
    assert_eq!(statuses.len(), 8);
    let commands: BTreeSet<&str> = operations::topics()
        .iter()
        .flat_map(|topic| &topic.orders)
        .map(|order| operations::name(&order.command))
        .collect();
    assert_eq!(commands.len(), operations::NAMES);
}

// conforms: L47 R41 R54
#[test]
fn a_job_moves_as_the_design_says_and_in_no_other_way() {
    assert_same(&design::job_moves(), &walk::jobs().moves());
}

#[test]
fn an_operation_moves_as_the_contract_says_and_in_no_other_way() {
    assert_same(&design::operation_moves(), &walk::operations().moves());
}

#[test]
fn every_state_takes_a_note_but_work_that_nobody_holds() {
    let noted: BTreeSet<String> = walk::jobs().noted();
    let classes: BTreeSet<String> =
        job_situations::all().iter().map(|situation| situation.class.to_owned()).collect();
    let without: Vec<&String> = classes.difference(&noted).collect();
    assert_eq!(without, ["queued, to be tried again"]);
}

fn assert_same(design: &BTreeSet<walk::Move>, walked: &BTreeSet<walk::Move>) {
    let refused: Vec<&walk::Move> = design.difference(walked).collect();
    let too_much: Vec<&walk::Move> = walked.difference(design).collect();
    assert!(refused.is_empty(), "allowed by the design, and not made: {refused:#?}");
    assert!(too_much.is_empty(), "made, and not allowed by the design: {too_much:#?}");
}
