//! The rules of what a step begins with.

use super::*;
use crate::{AttemptId, OwnerId};

/// It is over, and left files.
fn leaving(visit: VisitIndex) -> StepEnd {
    let (attempt_id, owner) = (AttemptId::new(format!("attempt-{visit}")), OwnerId::new("daemon-1"));
    StepEnd::Completed { emitted: 0, left: Some(Left { attempt_id, owner }) }
}

/// A step ends so, and what follows it begins.
fn goes_on(run: &mut Run, visit: VisitIndex, end: StepEnd) {
    ended(run, visit, end);
    advanced(run);
}

/// Where which visit's files go.
#[track_caller]
fn begins_with(run: &Run, name: &str, expected: &[(&str, VisitIndex)]) {
    let (at, _) = run.numbered().rfind(|(at, _)| name_of(run, *at) == name).expect("the walk came to it");
    let layers = run.files_for(at);
    let seen: Vec<(&str, VisitIndex)> =
        layers.iter().map(|layer| (layer.under.as_str(), layer.visit)).collect();
    assert_eq!(seen, expected, "{name}");
}

fn of(shape: Vec<Node>) -> Run {
    let mut run = begun(shape);
    advanced(&mut run);
    run
}

#[test]
fn step_begins_with_what_the_nearest_before_it_left() {
    let mut run = of(vec![step("a", Some(1)), step("b", Some(2)), step("c", Some(3)), step("d", None)]);
    begins_with(&run, "a", &[]);
    goes_on(&mut run, 0, leaving(0));
    begins_with(&run, "b", &[("", 0)]);
    goes_on(&mut run, 1, completed());
    begins_with(&run, "c", &[("", 0)]);
    goes_on(&mut run, 2, leaving(2));
    begins_with(&run, "d", &[("", 2)]);
}

#[test]
fn branches_begin_alike_and_what_they_left_lies_side_by_side_after_them() {
    let mut run = of(vec![
        step("a", Some(1)),
        group("all", &[2, 3, 5], Some(6)),
        step("x", None),
        step("y", Some(4)),
        step("y2", None),
        step("idle", None),
        step("z", None),
    ]);
    goes_on(&mut run, 0, leaving(0));
    for name in ["x", "y", "idle"] {
        begins_with(&run, name, &[("", 0)]);
    }
    goes_on(&mut run, 2, leaving(2));
    goes_on(&mut run, 3, leaving(3));
    goes_on(&mut run, 4, completed());
    begins_with(&run, "y2", &[("", 3)]);
    goes_on(&mut run, 5, leaving(5));
    begins_with(&run, "z", &[("", 0), ("branches/x", 2), ("branches/y", 5)]);
}

#[test]
fn branches_within_branches_lie_within_each_other() {
    let mut run = of(vec![
        group("all", &[1, 2], Some(5)),
        step("x", None),
        group("all/inner", &[3, 4], None),
        step("p", None),
        step("..", None),
        step("z", None),
    ]);
    for visit in [1, 3, 4] {
        goes_on(&mut run, visit, leaving(visit));
    }
    let inner = "branches/inner/branches";
    let (p, dots) = (format!("{inner}/p"), format!("{inner}/_.."));
    begins_with(&run, "z", &[("branches/x", 1), (&p, 3), (&dots, 4)]);
}

#[test]
fn what_is_called_goes_on_with_the_files_and_leaves_its_own() {
    let mut run =
        of(vec![step("a", Some(1)), group("call", &[2], Some(3)), step("call/b", None), step("c", None)]);
    goes_on(&mut run, 0, leaving(0));
    begins_with(&run, "call/b", &[("", 0)]);
    goes_on(&mut run, 2, leaving(2));
    begins_with(&run, "c", &[("", 2)]);
}

#[test]
fn several_ends_of_one_branch_are_numbered() {
    let mut run = of(vec![group("all", &[1], Some(3)), step("x", Some(2)), step("y", None), step("z", None)]);
    goes_on(&mut run, 1, StepEnd::Completed { emitted: 2, left: None });
    goes_on(&mut run, 2, leaving(2));
    goes_on(&mut run, 3, leaving(3));
    begins_with(&run, "z", &[("branches/x/1", 2), ("branches/x/2", 3)]);
}

#[test]
fn whatever_follows_a_failure_begins_where_the_failed_step_began() {
    let mut risky = step("b", Some(2));
    risky.on_error = OnError::Go(3);
    let mut run = of(vec![step("a", Some(1)), risky, step("c", None), step("mend", None)]);
    goes_on(&mut run, 0, leaving(0));
    goes_on(&mut run, 1, failed());
    begins_with(&run, "mend", &[("", 0)]);

    let mut run = of(vec![step("a", Some(1)), step("b", None)]);
    goes_on(&mut run, 0, leaving(0));
    goes_on(&mut run, 1, failed());
    after(&mut run, &RunCommand::ReopenStep { visit: 1, job_id: job_of(1) });
    begins_with(&run, "b", &[("", 0)]);
}

#[test]
fn what_mends_a_failed_group_finds_what_its_other_branches_left() {
    let mut all = group("all", &[1, 2], Some(3));
    all.on_error = OnError::Go(4);
    let mut run = of(vec![all, step("x", None), step("y", None), step("z", None), step("mend", None)]);
    goes_on(&mut run, 1, leaving(1));
    goes_on(&mut run, 2, failed());
    begins_with(&run, "mend", &[("branches/x", 1)]);
}

#[test]
fn long_row_of_groups_is_walked_once() {
    let mut shape = Vec::new();
    for at in (0..180).step_by(3) {
        let next = (at < 177).then_some(at + 3);
        shape.extend([group(&format!("g{at}"), &[at + 1, at + 2], next), step(&format!("x{at}"), None)]);
        shape.push(step(&format!("y{at}"), None));
    }
    let mut run = of(shape);
    while run.end.is_none() {
        let open: Vec<VisitIndex> = run
            .numbered()
            .filter(|(_, visit)| matches!(visit.state, VisitState::Open(_)))
            .map(|(at, _)| at)
            .collect();
        for visit in open {
            goes_on(&mut run, visit, completed());
        }
    }
    begins_with(&run, "y177", &[]);
}
