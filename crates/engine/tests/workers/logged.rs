//! What the log says of work outside: its beginning and end, a service that cannot be asked, and what a service says for people; and of
//! jobs that fail.

use std::io::Write;
use std::sync::{Arc, Mutex};

use domain::job::JobStateName;
use engine::{Failure, Produced};
use tracing::Level;
use tracing::subscriber::DefaultGuard;

use crate::given::{Given, job};
use crate::specialist::{Answer, Scripted, done, goes_on};

/// Everything that is logged on this thread while it lives.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn listen(&self) -> DefaultGuard {
        self.listen_at(Level::INFO)
    }

    fn listen_at(&self, level: Level) -> DefaultGuard {
        let log = self.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_max_level(level).with_writer(move || log.clone());
        tracing::subscriber::set_default(subscriber.finish())
    }

    fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().expect("no holder of the lock panics").clone();
        String::from_utf8(bytes).expect("it is text").lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn line(&self, says: &str) -> String {
        let lines = self.lines();
        lines.iter().find(|line| line.contains(says)).unwrap_or_else(|| panic!("{says}: {lines:#?}")).clone()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no holder of the lock panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// conforms: L44 L57 L61 L62 L83
#[tokio::test]
async fn the_log_tells_of_the_loop_of_hints_and_of_polls_that_raised() {
    let log = Log::default();
    let _listening = log.listen();
    let press = Scripted::deferring([goes_on(5, "page 1 of 3"), Answer::Raises, done()]);
    let given = Given::new([press.named("press")]);
    let started = log.line("external_polling_loop.started");
    assert!(started.contains(" INFO ") && started.contains("sleeps until something is due"), "{started}");
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let hint = log.line("page 1 of 3");
    assert!(hint.contains(" INFO ") && hint.contains(id.as_str()), "{hint}");
    given.next_poll(&id).await;
    let raised = log.line("external_polling_loop.poll_raised");
    assert!(
        raised.contains(" WARN ") && raised.contains(id.as_str()) && raised.contains("press"),
        "{raised}"
    );
    given.next_poll(&id).await;
    given.until(&id, JobStateName::Completed).await;
    assert!(!log.lines().iter().any(|line| line.contains("external_polling_loop.stopped")));
    given.daemon.stop().await;
    assert!(log.line("external_polling_loop.stopped").contains(" INFO "));
}

// conforms: L55 L97
#[tokio::test]
async fn failed_polling_round_is_logged_and_repeated() {
    let log = Log::default();
    let _listening = log.listen();
    let press = Scripted::deferring([done()]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.store.refuse_takes(2);
    given.next_poll(&id).await;
    assert_eq!(press.times("poll"), 0, "the store was away");
    let failed = log.line("external_polling_loop.tick_failed");
    assert!(failed.contains(" WARN "), "{failed}");
    for _ in 0..3 {
        given.clock.advance_seconds(1);
        given.settle().await;
    }
    given.until(&id, JobStateName::Completed).await;
}

// conforms: L44
#[tokio::test]
async fn a_hint_that_would_steer_a_terminal_or_break_the_line_is_made_plain() {
    let log = Log::default();
    let _listening = log.listen();
    let press = Scripted::deferring([goes_on(5, "page\u{1b}[2J 1\nERROR forged\u{7}")]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let hint = given.operation_of(&id).await.progress_hint.expect("it said something");
    assert_eq!(hint, "page [2J 1 ERROR forged ");
    assert!(log.line("page").contains("ERROR forged"), "{:?}", log.lines());
    assert!(!log.lines().iter().any(|line| line.contains('\u{1b}')));
}

#[tokio::test]
async fn failed_job_is_logged_with_its_reason_and_no_private_text() {
    for (level, tells_commits) in [(Level::INFO, false), (Level::DEBUG, true)] {
        let log = Log::default();
        let _listening = log.listen_at(level);
        let failure = Failure::permanent("no_paper", "the patient is 7f3a");
        let press = Scripted::producing([Produced::Failed(failure)], []);
        let given = Given::new([press.named("press")]);
        let id = given.create(job("press").input(br#""born in 1951""#)).await;
        let failed = given.until(&id, JobStateName::Failed).await;
        let line = log.line("job failed");
        let reason = failed.state_reason.expect("it has a reason");
        for told in [" INFO ", id.as_str(), "press", &reason] {
            assert!(line.contains(told), "{told}: {line}");
        }
        let commits = log.lines().iter().filter(|line| line.contains("committed")).count();
        assert_eq!(commits > 0, tells_commits, "{level}: {:#?}", log.lines());
        for line in log.lines() {
            assert!(!line.contains("7f3a") && !line.contains("1951"), "{line}");
        }
    }
}
