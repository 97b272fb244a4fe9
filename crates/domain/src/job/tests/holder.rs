//! Whose word ends an attempt: every holder beside every reporter, and the gate that no report passes.

use super::*;

fn caller(token: &str, peer: Option<&str>) -> Caller {
    Caller { token: token.to_owned(), peer: peer.map(str::to_owned) }
}

fn reporters() -> [(&'static str, Reporter); 7] {
    [
        ("the daemon", Reporter::Daemon),
        ("the process of the attempt", Reporter::AttemptToken(attempt(1))),
        ("the process of another attempt", Reporter::AttemptToken(attempt(2))),
        ("the puller", Reporter::Caller(caller("tok-1", Some("joan")))),
        ("another token of the peer", Reporter::Caller(caller("tok-2", Some("joan")))),
        ("the token without its peer", Reporter::Caller(caller("tok-1", None))),
        ("someone else", Reporter::Caller(caller("tok-3", Some("jim")))),
    ]
}

fn handed_to(holder: Holder) -> JobFact {
    let owner = OwnerId::new("node-1");
    JobFact::Dispatched { attempt_id: attempt(1), number: 1, owner, trigger: Trigger::Automatic, holder }
}

fn report_by(by: Reporter, attempt_id: Option<AttemptId>, state: JobStateName) -> JobCommand {
    let JobCommand::Report(mut told) = report(attempt_id, state, Details::default(), Retryable::No) else {
        unreachable!("it is one")
    };
    told.by = by;
    JobCommand::Report(told)
}

/// Every command that an attempt's id is shown with.
fn reports_of(by: &Reporter) -> Vec<JobCommand> {
    let mut commands: Vec<JobCommand> = [
        JobStateName::Running,
        JobStateName::AwaitingInput,
        JobStateName::Blocked,
        JobStateName::Completed,
        JobStateName::Failed,
        JobStateName::Cancelled,
    ]
    .map(|state| report_by(by.clone(), Some(attempt(1)), state))
    .into();
    commands.push(JobCommand::Heartbeat { attempt_id: attempt(1), by: by.clone() });
    let mut left = defer(1, new_operation());
    let JobCommand::Defer { left_by, .. } = &mut left else { unreachable!("it is one") };
    *left_by = LeftBy::Doer(by.clone());
    commands.push(left);
    commands
}

#[test]
fn attempt_takes_reports_of_its_holder_alone() {
    let puller = Holder::Caller(caller("tok-1", Some("joan")));
    let accepted: [(Holder, &[&str]); 3] = [
        (Holder::Daemon, &["the daemon", "the process of the attempt"]),
        (puller, &["the puller", "another token of the peer", "the token without its peer"]),
        (
            Holder::Bearer,
            &[
                "the daemon",
                "the process of the attempt",
                "the puller",
                "another token of the peer",
                "the token without its peer",
                "someone else",
            ],
        ),
    ];
    for (holder, accepted) in accepted {
        let given = [created(), handed_to(holder.clone()), started()];
        for (name, by) in reporters() {
            for command in reports_of(&by) {
                let decision = decide(&job(&given), &command, NOW);
                let refused = decision == Decision::refuse(Refusal::AttemptNotYours);
                assert_eq!(!refused, accepted.contains(&name), "{holder:?}, {name}: {command:?}");
            }
        }
    }
}

#[test]
fn attempt_that_ended_leaves_no_evidence_of_others() {
    let given = [created(), dispatched(1), requeued(NOW), dispatched(2), started()];
    let (_, someone_else) = reporters().into_iter().next_back().unwrap();
    let late = report_by(someone_else, Some(attempt(1)), JobStateName::Completed);
    check(&given, late, Decision::refuse(Refusal::AttemptNotYours));
}

#[test]
fn attempt_passed_on_by_an_executor_is_open_to_its_bearer() {
    let given = [created(), dispatched(1), JobFact::Delivered];
    let (_, someone_else) = reporters().into_iter().next_back().unwrap();
    let told = report_by(someone_else, Some(attempt(1)), JobStateName::Completed);
    check(&given, told, Decision::fact(completed()));
}

#[test]
fn gate_is_passed_by_no_report() {
    let puller = caller("tok-1", None);
    for holder in [Holder::Daemon, Holder::Bearer, Holder::Caller(puller.clone())] {
        let by = match &holder {
            Holder::Daemon => Reporter::Daemon,
            Holder::Bearer | Holder::Caller(_) => Reporter::Caller(puller.clone()),
        };
        let given = [created(), handed_to(holder), JobFact::InputAwaited(Details::default())];
        for state in JobStateName::ALL.into_iter().filter(|state| *state != JobStateName::AwaitingInput) {
            let told = report_by(by.clone(), Some(attempt(1)), state);
            check(&given, told, Decision::refuse(Refusal::AnswerRequired));
        }
        let stopped = [&given[..], &[cancel_requested()]].concat();
        let confirmed = report_by(by, Some(attempt(1)), JobStateName::Cancelled);
        check(&stopped, confirmed, Decision::fact(cancelled(CancelCause::Confirmed)));
    }
}

#[test]
fn queued_work_of_an_executor_takes_no_report_from_outside() {
    let (_, someone_else) = reporters().into_iter().next_back().unwrap();
    let told = report_by(someone_else.clone(), None, JobStateName::Completed);
    check(&[created()], told.clone(), Decision::refuse(Refusal::AttemptNotYours));
    let unmanaged = created_with(|new| new.spec.executor = None);
    check(&[unmanaged], told, Decision::fact(completed()));
}

#[test]
fn id_is_shown_to_those_who_may_report_with_it() {
    let puller = Holder::Caller(caller("tok-1", Some("joan")));
    let shown: [(Holder, &[&str]); 3] = [
        (Holder::Daemon, &["the daemon", "the process of the attempt"]),
        (puller, &["the puller", "another token of the peer", "the token without its peer"]),
        (Holder::Bearer, &["the process of the attempt"]),
    ];
    for (holder, shown) in shown {
        let job = job(&[created(), handed_to(holder.clone()), started()]);
        let attempt = job.last_attempt().unwrap();
        for (name, by) in reporters() {
            assert_eq!(attempt.shows_its_id_to(&by), shown.contains(&name), "{holder:?}, {name}");
        }
    }
}
