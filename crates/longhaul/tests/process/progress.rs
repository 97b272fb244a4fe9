//! Progress from inside a command: by the verb, and by whatever else comes down the descriptor.

use std::process::{Command, Output};
use std::time::Duration;

use crate::given::{Ended, Given, LONGHAUL};
use crate::lifeline::{Lifeline, fifo};

/// Of real time, for one second of the daemon's.
const WRITTEN_DOWN_WITHIN: Duration = Duration::from_millis(500);

#[tokio::test]
async fn progress_said_inside_a_command_is_on_the_record_while_it_runs() {
    let given = Given::new();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let gate = fifo(given.dir(), "gate");
    let say = format!("{LONGHAUL} progress --note 'half way' --phase mixing '{{\"done\": 1}}'");
    let id = given.start_script(&lifeline.script(&format!("{say} && echo told >&9 && read go < gate"))).await;
    assert_eq!(lifeline.said().await, "told");
    // It is written down at most once a second: whichever second that is.
    let mut said = None;
    while said.is_none() {
        given.clock.advance_seconds(1);
        let shown = given.until(&id, |job| job.phase.is_some());
        said = tokio::time::timeout(WRITTEN_DOWN_WITHIN, shown).await.ok();
    }
    let said = said.expect("it was shown");
    assert_eq!(said.phase.as_deref(), Some("mixing"));
    assert_eq!(said.progress.as_ref().map(domain::Json::as_str), Some("{\"done\":1}"));
    assert_eq!(said.notes.last().map(|note| note.note.as_str()), Some("half way"));
    std::fs::write(gate, "go\n").unwrap();
    given.ended(&id).await.assert_completed();
}

#[tokio::test]
async fn garbage_on_the_descriptor_is_counted_and_harms_nothing() {
    let given = Given::new();
    let script = "head -c 300000 /dev/urandom >&3; echo >&3
        yes garbage | head -n 1000 >&3
        head -c 100000 /dev/zero | tr '\\0' x >&3; echo >&3
        exec 3>&-; echo done";
    let ended = given.run_script(script).await;
    ended.assert_completed();
    assert!(dropped(&ended) >= 1_001, "{:?}", ended.job.result.summary);
}

#[tokio::test]
async fn flood_of_progress_is_told_at_a_bounded_pace() {
    let given = Given::new();
    let ended = given.run_script("yes '{\"note\":\"again\"}' | head -n 20000 >&3").await;
    ended.assert_completed();
    // It took a few seconds at the most, and in each of them fifty may be told.
    assert!((15_000..20_000).contains(&dropped(&ended)), "{:?}", ended.job.result.summary);
}

/// By the summary, whose last number it is.
fn dropped(ended: &Ended) -> u64 {
    let summary = ended.job.result.summary.as_deref().expect("there is one");
    let (before, _) = summary.split_once(" lines of progress dropped").expect("some were dropped");
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("it is a number")
}

fn progress(arguments: &[&str], descriptor: Option<&str>) -> Output {
    let mut command = Command::new(LONGHAUL);
    command.arg("progress").args(arguments).env_remove("LONGHAUL_PROGRESS_FD");
    if let Some(descriptor) = descriptor {
        command.env("LONGHAUL_PROGRESS_FD", descriptor);
    }
    command.output().expect("the binary runs")
}

#[test]
fn progress_says_why_it_cannot_be_told() {
    let long = "x".repeat(3_000);
    for (arguments, descriptor, why) in [
        (&["--note", "x"][..], None, "not inside an attempt"),
        (&["--note", "x"], Some("three"), "must be a number"),
        (&["--note", "x"], Some("77"), "descriptor 77 is not open"),
        (&["--note", "x"], Some("0"), "descriptor 0 is not"),
        (&[], Some("3"), "nothing to say"),
        (&["[1]"], Some("3"), "must be a JSON object"),
        (&["--note", &long], Some("3"), "note"),
    ] {
        let output = progress(arguments, descriptor);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?} {said}");
        assert!(said.contains(why), "{arguments:?} {descriptor:?}: {said}");
    }
}
