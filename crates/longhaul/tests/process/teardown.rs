//! A cancel is written down before anyone is told, told before anything is torn down, and ends with what was observed.

use std::fs;
use std::time::{Duration, Instant};

use domain::RecordId;
use domain::job::{CancelCause, CancelRecipient, CancelTry, JobFact, JobStateName, Release};
use rustix::process::{Pid, Signal, kill_process};
use store::Store;

use crate::given::{Given, PATIENCE};
use crate::lifeline::Lifeline;

/// Turns of every task of the daemon, which are in this thread: the order to stop has gone out by then.
const TURNS: usize = 1_000;

/// The names of what happened to a job, oldest first.
async fn facts(given: &Given, id: &domain::JobId) -> Vec<JobFact> {
    let facts = given.store.facts_of(&RecordId::from(id.clone()), 0, 1_000).await.expect("they can be read");
    facts.into_iter().filter_map(|fact| fact.fact.as_job().cloned()).collect()
}

fn cancel_requested(facts: &[JobFact]) -> bool {
    facts.iter().any(|fact| matches!(fact, JobFact::CancelRequested { .. }))
}

fn cancelled(facts: &[JobFact]) -> bool {
    facts.iter().any(|fact| matches!(fact, JobFact::Cancelled(_)))
}

/// The command says when TERM reaches it; at that moment the request must stand in the ledger, and nothing be over.
// conforms: R75 R76
#[tokio::test]
async fn cancel_is_on_the_ledger_before_term_reaches_the_command_and_the_end_is_what_was_observed() {
    let grace = Duration::from_secs(3);
    let given = Given::with(|settings| settings.grace = grace);
    let mut lifeline = Lifeline::in_dir(given.dir());
    let stubborn = "trap 'echo term >&9' TERM; echo up >&9; while :; do sleep 0.01; done";
    let id = given.start_script(&lifeline.script(stubborn)).await;
    assert_eq!(lifeline.said().await, "up");
    assert!(!cancel_requested(&facts(&given, &id).await));
    let asked_at = Instant::now();
    given.cancel(&id).await;
    assert_eq!(lifeline.said().await, "term", "it was killed without being asked first");
    let at_term = facts(&given, &id).await;
    assert!(cancel_requested(&at_term), "{at_term:?}");
    assert!(!cancelled(&at_term), "it lives still: {at_term:?}");
    // The bounded wait is over: it ignored TERM and is killed, with all of its tree.
    lifeline.ended().await;
    assert!(asked_at.elapsed() >= grace, "it was killed before its time was over: {:?}", asked_at.elapsed());
    let ended = given.ended(&id).await;
    assert_eq!(ended.job.state.name(), JobStateName::Cancelled);
    let after = facts(&given, &id).await;
    let released = Some(Release::Ended);
    assert!(
        matches!(after.last(), Some(JobFact::Cancelled(end)) if end.cause == CancelCause::Confirmed && end.details.release == released),
        "{after:?}"
    );
    let signalled = JobFact::CancelTried(CancelTry::sent_to(CancelRecipient::Process));
    assert!(after.contains(&signalled), "{after:?}");
}

/// What has ended by itself is not called cancelled because someone wanted it to be.
// conforms: R76
#[tokio::test]
async fn command_that_had_ended_before_the_cancel_reached_it_is_completed() {
    let given = Given::new();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let script = "trap 'echo term >&9' TERM; echo $PPID >&9; echo $$ >&9; while ! test -e go; do sleep 0.01; done; echo 7";
    let id = given.start_script(&lifeline.script(script)).await;
    let supervisor = lifeline.said().await.parse().ok().and_then(Pid::from_raw).expect("it is a process");
    let stat = format!("/proc/{}/stat", lifeline.said().await);
    // It stands still, and hears of the end and of the cancel together when it goes on.
    kill_process(supervisor, Signal::STOP).unwrap();
    fs::write(given.dir().join("go"), "").unwrap();
    let over = async {
        while !fs::read_to_string(&stat).expect("nobody has buried it").contains(") Z ") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, over).await.expect("the command ends by itself");
    given.cancel(&id).await;
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
    kill_process(supervisor, Signal::CONT).unwrap();
    assert_eq!(given.ended(&id).await.assert_completed().data, serde_json::json!(7));
}

/// The line to the command is broken: nobody can be asked to stop, and the record says so.
// conforms: R77
#[tokio::test]
async fn broken_line_to_a_command_fails_the_attempt_and_says_that_no_cancel_was_possible() {
    let given = Given::with(|settings| settings.grace = Duration::from_millis(100));
    let mut lifeline = Lifeline::in_dir(given.dir());
    let script =
        "trap 'echo term >&9' TERM; echo last words >&2; echo $PPID >&9; while :; do sleep 0.01; done";
    let id = given.start_script(&lifeline.script(script)).await;
    let supervisor = lifeline.said().await.parse().ok().and_then(Pid::from_raw).expect("it is a process");
    kill_process(supervisor, Signal::KILL).unwrap();
    let ended = given.ended(&id).await;
    ended.assert_failed("supervisor_lost");
    assert!(ended.message().contains("no cancel was possible"), "{}", ended.message());
    assert_eq!(ended.error["details"]["cancel_possible"], false);
    assert_eq!(ended.error["details"]["stderr_tail"], "last words\n");
    assert_eq!(lifeline.ended().await, [""; 0], "it was sent a TERM");
}
