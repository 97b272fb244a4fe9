//! Manners that say something else than how it is: a well-formed answer, but not the truth.

use serde_json::{Value, json};

use crate::manner::Manner;
use crate::work::{Cancel, View, Work, WorkState};

/// What is said at this status, and counted as said; nothing when the service claims not to know the work.
pub fn told(work: &mut Work, now: i64) -> Option<View> {
    let turn = work.asked.statuses;
    work.asked.statuses += 1;
    conclude_late_cancel(work);
    let honest = work.view(now);
    let over = honest.state.is_over();
    let ends_before = work.asked.ends;
    work.asked.ends += u32::from(over);
    match work.script.manner {
        Manner::NeverEnds if honest.state != WorkState::Cancelled => Some(never_ending()),
        Manner::Flips if over && ends_before % 2 == 1 => Some(honest.contradicted()),
        Manner::Forgets if turn > 0 => None,
        Manner::ForgetsNowAndThen if turn % 2 == 1 => None,
        Manner::LiesAboutProgress if !over => Some(View { percent: lie(work, turn), ..honest }),
        Manner::Regresses if !over => Some(View { state: back_and_forth(turn), ..honest }),
        Manner::ResultOnSecondTry if ends_before == 0 => Some(View { result: None, ..honest }),
        Manner::Honest
        | Manner::NeverEnds
        | Manner::Flips
        | Manner::Forgets
        | Manner::ForgetsNowAndThen
        | Manner::LiesAboutProgress
        | Manner::Regresses
        | Manner::HostileRetryAfter
        | Manner::HugeBody
        | Manner::GzipBomb
        | Manner::Drips
        | Manner::Hangs
        | Manner::Closes
        | Manner::Garbage
        | Manner::RedirectsToPrivate
        | Manner::RedirectLoop
        | Manner::WrongLength
        | Manner::Error500
        | Manner::RateLimited429
        | Manner::Overloaded503
        | Manner::Slow30s
        | Manner::RefusesCancel
        | Manner::CancelUnreachable
        | Manner::CancelsLate
        | Manner::AnswersTwice
        | Manner::AcceptsThenDrops
        | Manner::ResultOnSecondTry
        | Manner::CallbackRepeats
        | Manner::CallbackContradicts
        | Manner::CallbackBeforeAnswer
        | Manner::CallbackLate
        | Manner::CallbackForged
        | Manner::CallbackNever => Some(honest),
    }
}

/// Work that was told to stop some statuses ago does so now.
fn conclude_late_cancel(work: &mut Work) {
    if let Cancel::Until { statuses } = work.cancel
        && work.asked.statuses > statuses
    {
        work.cancel = Cancel::Stopped;
    }
}

fn never_ending() -> View {
    View {
        state: WorkState::Running,
        percent: json!(99),
        message: "almost done".to_owned(),
        result: None,
        error: None,
    }
}

fn back_and_forth(turn: u32) -> WorkState {
    if turn.is_multiple_of(2) { WorkState::Running } else { WorkState::Queued }
}

fn lie(work: &Work, turn: u32) -> Value {
    let lies =
        [json!(90), json!(10), json!(250), json!(-5), json!("NaN"), json!(1e308), json!(null), json!([50])];
    let turn = work.script.variant.unwrap_or(turn as usize);
    lies[turn % lies.len()].clone()
}
