//! The rules of runs: how a walk goes on, ends, fails, is stopped and comes back.

mod files;

use super::*;
use crate::body::{BodyName, BodyRef, Digest};
use crate::job::{JobSpec, NewJob};
use crate::limit::LimitValue;
use crate::{Decision, EventId, Jitter, JobId, Refusal, RetryPolicy, RunId, Timestamp};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(1_000).plus_seconds(seconds)
}

fn body(name: BodyName) -> BodyRef {
    BodyRef { name, sha256: Digest([0; 32]), size: 2 }
}

fn step(id: &str, next: Option<NodeIndex>) -> Node {
    Node { id: id.to_owned(), kind: NodeKind::Step, next, conditional: false, on_error: OnError::Stop }
}

fn group(id: &str, branches: &[NodeIndex], next: Option<NodeIndex>) -> Node {
    Node { kind: NodeKind::Group { branches: branches.to_vec() }, ..step(id, next) }
}

fn begun(shape: Vec<Node>) -> Run {
    let new = NewRun {
        pipeline: "tides".to_owned(),
        version: "1".to_owned(),
        shape: Shape(shape),
        plan: body(BodyName::Plan),
        input: body(BodyName::Input),
        event_id: EventId::new("event-1"),
        parent: None,
        circle: None,
        depth: 0,
        max_depth: None,
        dedupe_key: None,
        correlation: None,
    };
    new.check().unwrap();
    Run::new(RunId::new("run-1"), &new, at(0))
}

fn job_of(visit: VisitIndex) -> JobId {
    JobId::new(format!("work-{visit}"))
}

/// Decides and folds; the facts, and the jobs that were created.
fn after(run: &mut Run, command: &RunCommand) -> Vec<RunFact> {
    match decide(run, command, at(1)) {
        Decision::Facts { facts, .. } => {
            for fact in &facts {
                apply(run, fact, at(1)).unwrap();
            }
            facts
        }
        Decision::Nothing => Vec::new(),
        Decision::Refused { refusal, .. } => panic!("{refusal}"),
    }
}

fn prepared(run: &Run, visit: VisitIndex, readiness: Readiness) -> Prepared {
    Prepared { visit, origin: run.origin(visit), readiness }
}

/// The first visit is ready for this.
fn readied(run: &mut Run, readiness: Readiness) -> Vec<RunFact> {
    let command = RunCommand::Advance(vec![prepared(run, 0, readiness)]);
    after(run, &command)
}

/// Makes a job of every step that waits.
fn advanced(run: &mut Run) -> Vec<String> {
    let input = NewJob {
        spec: JobSpec::plain(Some("echo"), RetryPolicy::ONCE),
        due_at: None,
        bodies: vec![body(BodyName::Input)],
    };
    let ready = |visit| Readiness::Job { job_id: job_of(visit), job: Box::new(input.clone()) };
    let all: Vec<Prepared> = run.waiting().map(|visit| prepared(run, visit, ready(visit))).collect();
    let names = all.iter().map(|one| name_of(run, one.visit)).collect();
    after(run, &RunCommand::Advance(all));
    names
}

fn name_of(run: &Run, visit: VisitIndex) -> String {
    run.visit(visit).and_then(|visit| run.node(visit)).map(|node| node.id.clone()).unwrap()
}

fn ended(run: &mut Run, visit: VisitIndex, end: StepEnd) -> Vec<RunFact> {
    after(run, &RunCommand::EndStep { visit, job_id: job_of(visit), end })
}

fn completed() -> StepEnd {
    StepEnd::Completed { emitted: 0, left: None }
}

fn failed() -> StepEnd {
    StepEnd::Failed { code: "boom".to_owned() }
}

#[test]
fn steps_follow_each_other_and_the_run_ends_with_the_last() {
    let mut run = begun(vec![step("a", Some(1)), step("b", None)]);
    assert_eq!(advanced(&mut run), ["a"]);
    ended(&mut run, 0, completed());
    assert_eq!((advanced(&mut run), run.state()), (vec!["b".to_owned()], RunState::Running));
    let facts = ended(&mut run, 1, completed());
    assert_eq!(facts.last(), Some(&RunFact::Ended(RunEnd::Completed)));
    assert_eq!(run.visits[1].cause, Cause::After(0, 0));
}

#[test]
fn what_follows_a_group_waits_for_all_its_branches_and_comes_once() {
    let mut run =
        begun(vec![group("all", &[1, 2], Some(3)), step("x", None), step("y", None), step("z", None)]);
    assert_eq!(advanced(&mut run), ["x", "y"]);
    ended(&mut run, 1, completed());
    assert_eq!(advanced(&mut run), [""; 0]);
    ended(&mut run, 2, completed());
    assert_eq!(advanced(&mut run), ["z"]);
    assert_eq!(run.visits[3].cause, Cause::After(0, 0));
    ended(&mut run, 3, completed());
    assert_eq!(run.state(), RunState::Completed);
}

#[test]
fn step_that_emits_many_events_is_followed_as_many_times_and_a_group_still_comes_to_one_end() {
    let mut run =
        begun(vec![group("all", &[1], Some(3)), step("x", Some(2)), step("y", None), step("z", None)]);
    advanced(&mut run);
    ended(&mut run, 1, StepEnd::Completed { emitted: 3, left: None });
    assert_eq!(advanced(&mut run), ["y", "y", "y"]);
    for visit in [2, 3, 4] {
        assert_eq!(advanced(&mut run), [""; 0]);
        ended(&mut run, visit, completed());
    }
    assert_eq!(advanced(&mut run), ["z"]);
}

#[test]
fn failure_ends_its_branch_and_the_run_while_the_others_go_on() {
    let mut run =
        begun(vec![group("all", &[1, 2], Some(3)), step("x", None), step("y", None), step("z", None)]);
    advanced(&mut run);
    ended(&mut run, 1, failed());
    assert_eq!(run.state(), RunState::Running);
    let facts = ended(&mut run, 2, completed());
    assert_eq!(facts.last(), Some(&RunFact::Ended(RunEnd::Failed)));
    assert_eq!(run.visits.len(), 3, "what follows the group never began");
}

#[test]
fn failure_goes_where_its_step_says() {
    let mut tolerant = step("a", Some(1));
    tolerant.on_error = OnError::Continue;
    let mut run = begun(vec![tolerant, step("b", None)]);
    advanced(&mut run);
    ended(&mut run, 0, failed());
    assert_eq!((advanced(&mut run), run.visits[1].cause), (vec!["b".to_owned()], Cause::Failure(0)));
    ended(&mut run, 1, completed());
    assert_eq!(run.state(), RunState::Completed);

    let mut handled = step("a", Some(1));
    handled.on_error = OnError::Go(2);
    let mut run = begun(vec![handled, step("b", None), step("mend", None)]);
    advanced(&mut run);
    ended(&mut run, 0, failed());
    assert_eq!(advanced(&mut run), ["mend"], "and what would have followed does not");
    ended(&mut run, 1, completed());
    assert_eq!(run.state(), RunState::Completed);
}

#[test]
fn failure_inside_a_group_is_the_groups() {
    let mut all = group("all", &[1], Some(2));
    all.on_error = OnError::Go(3);
    let mut run = begun(vec![all, step("x", None), step("z", None), step("mend", None)]);
    advanced(&mut run);
    ended(&mut run, 1, failed());
    assert_eq!(advanced(&mut run), ["mend"]);
    ended(&mut run, 2, completed());
    assert_eq!(run.state(), RunState::Completed);
}

#[test]
fn step_that_is_skipped_is_followed_by_what_follows_it() {
    let mut maybe = step("a", Some(1));
    maybe.conditional = true;
    let mut run = begun(vec![maybe, step("b", None)]);
    readied(&mut run, Readiness::Skip);
    assert_eq!(advanced(&mut run), ["b"]);
}

#[test]
fn group_with_a_condition_begins_only_when_someone_has_looked() {
    let mut maybe = group("all", &[1], None);
    maybe.conditional = true;
    let shape = vec![maybe, step("x", None)];
    let mut run = begun(shape.clone());
    assert_eq!(run.waiting().collect::<Vec<_>>(), [0]);
    readied(&mut run, Readiness::Enter);
    assert_eq!(advanced(&mut run), ["x"]);
    let mut run = begun(shape);
    let facts = readied(&mut run, Readiness::Skip);
    assert_eq!(facts.last(), Some(&RunFact::Ended(RunEnd::Completed)));
}

#[test]
fn what_does_not_wait_any_more_is_not_begun_again() {
    let mut run = begun(vec![step("a", None)]);
    advanced(&mut run);
    let again = prepared(&run, 0, Readiness::Fail { code: "late".to_owned() });
    assert_eq!(decide(&run, &RunCommand::Advance(vec![again]), at(1)), Decision::Nothing);
    ended(&mut run, 0, completed());
    assert_eq!(ended(&mut run, 0, completed()), [], "nor ended twice");
}

#[test]
fn cancel_stops_what_goes_on_and_begins_nothing_more() {
    let mut run =
        begun(vec![group("all", &[1, 2], Some(3)), step("x", None), step("y", None), step("z", None)]);
    advanced(&mut run);
    let cancel = RunCommand::RequestCancel { by: None, reason: "enough".to_owned() };
    let Decision::Facts { consequences, .. } = decide(&run, &cancel, at(1)) else { panic!("it is allowed") };
    assert_eq!(consequences.len(), 2);
    after(&mut run, &cancel);
    assert_eq!(run.state(), RunState::Cancelling);
    ended(&mut run, 1, completed());
    ended(&mut run, 2, StepEnd::Cancelled);
    assert_eq!((run.state(), run.visits.len()), (RunState::Cancelled, 3));
    assert_eq!(decide(&run, &cancel, at(2)), Decision::Nothing);
}

#[test]
fn late_cancel_keeps_the_end_and_no_step_is_tried_again() {
    let mut run = begun(vec![step("a", None)]);
    advanced(&mut run);
    ended(&mut run, 0, failed());
    let cancel = RunCommand::RequestCancel { by: Some("ada".to_owned()), reason: "enough".to_owned() };
    let Decision::Facts { facts, consequences } = decide(&run, &cancel, at(1)) else { panic!("it is kept") };
    assert_eq!((facts.len(), consequences.len()), (1, 0));
    after(&mut run, &cancel);
    assert_eq!(run.state(), RunState::Failed);
    assert_eq!(run.cancel.as_ref().map(|cancel| &*cancel.reason), Some("enough"));
    let reopen = RunCommand::ReopenStep { visit: 0, job_id: job_of(0) };
    assert_eq!(decide(&run, &reopen, at(2)), Decision::refuse(Refusal::StepMovedOn));
    assert_eq!(decide(&run, &cancel, at(2)), Decision::Nothing);
}

#[test]
fn step_that_failed_is_done_again_as_long_as_nothing_was_made_of_its_failure() {
    let shape = || vec![group("all", &[1], Some(2)), step("x", None), step("z", None)];
    let mut run = begun(shape());
    advanced(&mut run);
    ended(&mut run, 1, failed());
    assert_eq!(run.state(), RunState::Failed);
    let reopen = RunCommand::ReopenStep { visit: 1, job_id: job_of(1) };
    after(&mut run, &reopen);
    assert_eq!((run.state(), &run.visits[0].state), (RunState::Running, &VisitState::Inside));
    ended(&mut run, 1, completed());
    assert_eq!(advanced(&mut run), ["z"]);

    let mut handled = shape();
    handled[0].on_error = OnError::Continue;
    let mut run = begun(handled);
    advanced(&mut run);
    ended(&mut run, 1, failed());
    assert_eq!(decide(&run, &reopen, at(1)), Decision::refuse(Refusal::StepMovedOn));
}

#[test]
fn job_that_was_given_up_and_ends_after_all_moves_its_run() {
    let mut run = begun(vec![step("a", Some(1)), step("b", None)]);
    advanced(&mut run);
    ended(&mut run, 0, StepEnd::Failed { code: "runner_interrupted".to_owned() });
    assert_eq!(run.state(), RunState::Failed);
    ended(&mut run, 0, completed());
    assert_eq!((advanced(&mut run), run.state()), (vec!["b".to_owned()], RunState::Running));
}

#[test]
fn run_that_comes_to_more_nodes_than_it_may_fails_and_says_so() {
    let mut run = begun(vec![step("a", Some(1)), step("b", None)]);
    advanced(&mut run);
    ended(&mut run, 0, StepEnd::Completed { emitted: 1_000, left: None });
    assert_eq!((run.visits.len(), run.condemned.as_deref()), (MAX_VISITS, Some("too_many_steps")));
    let limit = crate::limit::ended_run(&run).expect("a limit of the host ended it");
    assert_eq!((&*limit.name, limit.value), ("steps of a run", LimitValue::Count(MAX_VISITS as u64)));
    while run.end.is_none() {
        advanced(&mut run);
        let open: Vec<VisitIndex> = run
            .numbered()
            .filter(|(_, visit)| !visit.is_over() && visit.job_id().is_some())
            .map(|(at, _)| at)
            .collect();
        assert!(!open.is_empty(), "it goes on");
        for visit in open {
            ended(&mut run, visit, completed());
        }
    }
    assert_eq!(run.state(), RunState::Failed);
}

#[test]
fn shape_that_leads_back_is_refused() {
    for shape in [
        Vec::new(),
        vec![step("a", Some(0))],
        vec![step("a", Some(1))],
        vec![step("a", Some(1)), group("b", &[0], None)],
        vec![group("a", &[], None)],
        vec![Node { on_error: OnError::Go(0), ..step("a", None) }],
    ] {
        assert!(Shape(shape.clone()).check().is_err(), "{shape:?}");
    }
}

#[test]
fn run_needs_someone_while_something_waits_and_when_it_is_to_be_forgotten() {
    use crate::attention::Retention;
    let mut run = begun(vec![step("a", None)]);
    assert_eq!(run.attention(Retention::DEFAULT).due_at, Some(at(0)));
    advanced(&mut run);
    assert_eq!(run.attention(Retention::DEFAULT).due_at, None);
    ended(&mut run, 0, completed());
    let forgotten_at = at(1).plus_seconds(Retention::DEFAULT.completed_seconds);
    assert_eq!(run.attention(Retention::DEFAULT).due_at, Some(forgotten_at));
    assert_eq!(run.due_command(Retention::DEFAULT, Jitter::default, forgotten_at), Some(RunCommand::Retire));
}

#[test]
fn step_prepared_for_one_visit_is_not_taken_for_another() {
    let mut left = step("left", Some(3));
    left.on_error = OnError::Go(4);
    let shape = vec![group("all", &[1, 2], None), left, step("right", Some(5))];
    let mut run = begun([shape, vec![step("next", None), step("mend", None), step("last", None)]].concat());
    advanced(&mut run);
    // The report of one branch is prepared, and meanwhile the other fails: its handler comes first.
    let mut seen = run.clone();
    ended(&mut seen, 2, completed());
    let for_last = prepared(&seen, 3, Readiness::Skip);
    ended(&mut run, 1, failed());
    ended(&mut run, 2, completed());
    assert_eq!((name_of(&run, 3), name_of(&run, 4)), ("mend".to_owned(), "last".to_owned()));
    assert_eq!(decide(&run, &RunCommand::Advance(vec![for_last]), at(1)), Decision::Nothing);
}

/// A group is entered within the walk, so that the steps in it name their group by its index alone.
#[test]
fn step_prepared_in_one_group_is_not_taken_for_one_in_another() {
    let mut left = step("left", Some(3));
    left.on_error = OnError::Go(4);
    let shape = vec![group("all", &[1, 2], None), left, step("right", Some(6)), step("next", None)];
    let mends = vec![group("mends", &[5], None), step("mend", None)];
    let lasts = vec![group("lasts", &[7], None), step("last", None)];
    let mut run = begun([shape, mends, lasts].concat());
    advanced(&mut run);
    let mut seen = run.clone();
    ended(&mut seen, 2, completed());
    assert_eq!((name_of(&seen, 3), name_of(&seen, 4)), ("lasts".to_owned(), "last".to_owned()));
    let for_last = prepared(&seen, 4, Readiness::Skip);
    ended(&mut run, 1, failed());
    ended(&mut run, 2, completed());
    assert_eq!((name_of(&run, 3), name_of(&run, 4)), ("mends".to_owned(), "mend".to_owned()));
    assert_eq!(decide(&run, &RunCommand::Advance(vec![for_last]), at(1)), Decision::Nothing);
}

fn at_work_on(steps: VisitIndex) -> Run {
    let branches: Vec<NodeIndex> = (1..=steps).collect();
    let mut shape = vec![group("all", &branches, None)];
    shape.extend(branches.iter().map(|branch| step(&branch.to_string(), None)));
    let mut run = begun(shape);
    while !advanced(&mut run).is_empty() {}
    run
}

fn asked_to_stop(run: &mut Run, command: &RunCommand) -> Vec<String> {
    let Decision::Facts { facts, consequences } = decide(run, command, at(1)) else { return Vec::new() };
    for fact in &facts {
        apply(run, fact, at(1)).unwrap();
    }
    consequences.into_iter().map(|one| one.record.as_str().to_owned()).collect()
}

#[test]
fn cancel_reaches_every_job_once_and_a_few_in_each_commit() {
    let retention = crate::attention::Retention::DEFAULT;
    for steps in [1, 15, 16, 17, 32, 33, 63] {
        let mut run = at_work_on(steps);
        let expected: Vec<String> = run.open_jobs().map(|(_, job_id)| job_id.as_str().to_owned()).collect();
        let cancel = RunCommand::RequestCancel { by: None, reason: "enough".to_owned() };
        let mut asked = asked_to_stop(&mut run, &cancel);
        assert_eq!(asked.len(), expected.len().min(MAX_CANCELLED));
        while let Some(command) = run.due_command(retention, Jitter::default, at(1)) {
            assert_eq!(
                (command.clone(), run.attention(retention).due_at),
                (RunCommand::ContinueCancel, Some(at(1)))
            );
            let more = asked_to_stop(&mut run, &command);
            assert!((1..=MAX_CANCELLED).contains(&more.len()));
            asked.extend(more);
        }
        assert_eq!((asked, run.state()), (expected, RunState::Cancelling));
        assert_eq!(run.attention(retention).due_at, None);
        assert_eq!(decide(&run, &RunCommand::ContinueCancel, at(2)), Decision::Nothing);
    }
}

#[test]
fn cancel_goes_on_past_jobs_that_have_ended_by_themselves() {
    let mut run = at_work_on(20);
    asked_to_stop(&mut run, &RunCommand::RequestCancel { by: None, reason: "enough".to_owned() });
    let left: Vec<VisitIndex> = run.not_yet_cancelled().map(|(visit, _)| visit).collect();
    assert_eq!(left.len(), 4);
    ended(&mut run, left[0], completed());
    assert_eq!(asked_to_stop(&mut run, &RunCommand::ContinueCancel).len(), 3);
}
