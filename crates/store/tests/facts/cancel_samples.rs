//! Every answer to a cancel, and everything that may come of passing one on.

use domain::job::{CancelAnswer, CancelRecipient, CancelSent, CancelTry};

/// Every answer.
pub fn cancel_answers() -> Vec<CancelAnswer> {
    vec![
        CancelAnswer::Cancelled,
        CancelAnswer::Accepted,
        CancelAnswer::Refused("too late".to_owned()),
        CancelAnswer::Unreachable,
        CancelAnswer::NeverStarted,
    ]
}

/// Every try, with every answer.
pub fn cancel_tries() -> Vec<CancelTry> {
    let told_to = [
        CancelRecipient::Executor,
        CancelRecipient::Process,
        CancelRecipient::Worker,
        CancelRecipient::Service,
    ]
    .map(CancelTry::sent_to);
    let answered = cancel_answers().into_iter().map(|answer| {
        let (to, told) = (CancelRecipient::Service, Some("HTTP 202".to_owned()));
        CancelTry::Sent(CancelSent { to, answer: Some(answer), told })
    });
    let not_sent = [
        CancelTry::NotCancelable("the press has no stop".to_owned()),
        CancelTry::NotSent("specialist_unregistered".to_owned()),
    ];
    told_to.into_iter().chain(answered).chain(not_sent).collect()
}
