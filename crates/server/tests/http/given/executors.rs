//! Executors with a known character.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use engine::{Assignment, Failure, Link, Output, Produced, Specialist};

pub fn all() -> Vec<(&'static str, Arc<dyn Specialist>)> {
    vec![
        ("echo", Arc::new(Echo)),
        ("command", Arc::new(Echo)),
        ("fails", Arc::new(Fails)),
        ("hands_over", Arc::new(HandsOver)),
        ("asks", Arc::new(Asks)),
        ("stays", Arc::new(Stays)),
    ]
}

type Outcome<'a> = Pin<Box<dyn Future<Output = Produced> + Send + 'a>>;

/// Gives its input back.
struct Echo;

impl Specialist for Echo {
    fn produce(&self, assignment: Assignment, _: Link) -> Outcome<'_> {
        let output =
            Output { summary: Some("echoed".to_owned()), data: Some(assignment.input), artifacts: None };
        Box::pin(async move { Produced::Completed(output) })
    }
}

/// Fails for good.
struct Fails;

impl Specialist for Fails {
    fn produce(&self, _: Assignment, _: Link) -> Outcome<'_> {
        Box::pin(async { Produced::Failed(Failure::permanent("out_of_paper", "there is no paper")) })
    }
}

/// Hands the work to somebody who will report.
struct HandsOver;

impl Specialist for HandsOver {
    fn produce(&self, _: Assignment, _: Link) -> Outcome<'_> {
        Box::pin(async { Produced::Delivered })
    }
}

/// Asks first, then gives the answer back.
struct Asks;

impl Specialist for Asks {
    fn produce(&self, assignment: Assignment, _: Link) -> Outcome<'_> {
        Box::pin(async move {
            match assignment.answers.into_iter().next_back() {
                None => Produced::AwaitingInput { question: b"\"may I?\"".to_vec() },
                Some(answer) => Produced::Completed(Output { data: Some(answer), ..Output::default() }),
            }
        })
    }
}

/// Works until it is told to stop.
struct Stays;

impl Specialist for Stays {
    fn produce(&self, _: Assignment, mut link: Link) -> Outcome<'_> {
        Box::pin(async move {
            link.stopped().await;
            Produced::Stopped
        })
    }
}
