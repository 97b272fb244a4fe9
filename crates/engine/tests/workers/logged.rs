//! What the log says of work outside: its beginning and end, a service that cannot be asked, and what a service says for people.

use std::io::Write;
use std::sync::{Arc, Mutex};

use domain::job::JobStateName;
use tracing::subscriber::DefaultGuard;

use crate::given::{Given, job};
use crate::specialist::{Answer, Scripted, done, goes_on};

/// Everything that is logged on this thread while it lives.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn listen(&self) -> DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::INFO)
            .with_writer(move || log.clone());
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

// conforms: L44 L61 L62
#[tokio::test]
async fn the_log_tells_of_the_loop_of_hints_and_of_polls_that_raised() {
    let log = Log::default();
    let _listening = log.listen();
    let press = Scripted::deferring([goes_on(5, "page 1 of 3"), Answer::Raises, done()]);
    let given = Given::new([press.named("press")]);
    assert!(log.line("external_polling_loop.started").contains(" INFO "));
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
    given.daemon.stop().await;
    assert!(log.line("external_polling_loop.stopped").contains(" INFO "));
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
