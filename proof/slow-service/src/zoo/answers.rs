//! Manners that send an answer as no server should.

use serde_json::json;

use super::bomb::gzip_bomb;
use super::garbage::garbage;
use crate::http::{Answer, Response, Then};
use crate::manner::{Manner, Occasion};
use crate::measures::Measures;
use crate::work::Work;

/// Times to come back that no host should follow. An empty one is a header without a value.
const RETRY_AFTERS: [&str; 9] = [
    "99999999999",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "-5",
    "soon",
    "NaN",
    "1e308",
    "0",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "",
];

/// Where a service must not be able to send its host.
const PRIVATE_ADDRESSES: [&str; 8] = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[::1]:1/",
    "file:///etc/passwd",
    "http://2130706433:1/",
    "http://[::ffff:127.0.0.1]:1/",
    "http://0.0.0.0:1/",
    "gopher://127.0.0.1:1/",
    "//10.0.0.1/",
];

/// The answer as this work's manner sends it; `turn` counts the answers on this occasion.
pub fn misanswer(
    work: &Work,
    occasion: Occasion,
    turn: u32,
    response: Response,
    measures: &Measures,
) -> Answer {
    if !misbehaves(work, occasion, turn) {
        return response.into();
    }
    let variant = work.script.variant.unwrap_or(turn as usize);
    match work.script.manner {
        Manner::HostileRetryAfter => {
            response.replacing("Retry-After", RETRY_AFTERS[variant % RETRY_AFTERS.len()]).into()
        }
        Manner::HugeBody => huge(work, measures),
        Manner::GzipBomb => bomb(work, measures),
        Manner::Drips => Answer::Dripped(measures.drip, response),
        Manner::Hangs => Answer::Silence(measures.hang),
        Manner::Closes => Answer::CutOff(response),
        Manner::Garbage => Response { body: garbage(&work.id, variant, measures.nesting), ..response }.into(),
        Manner::RedirectsToPrivate => redirect(match &work.script.redirect_to {
            Some(target) => target,
            None => PRIVATE_ADDRESSES[variant % PRIVATE_ADDRESSES.len()],
        }),
        Manner::RedirectLoop => redirect(&own_path(work, occasion)),
        Manner::WrongLength => wrong_length(&response, variant),
        Manner::Error500 => Response::refusal(500, "broken", "something broke").into(),
        // Whoever was turned away at the start has no work to be answered for.
        Manner::RateLimited429 | Manner::Overloaded503 if occasion == Occasion::Start => response.into(),
        Manner::RateLimited429 => refused(429, "rate_limited").into(),
        Manner::Overloaded503 => refused(503, "overloaded").into(),
        Manner::Slow30s => Answer::Late(measures.slow, response),
        Manner::AnswersTwice => twice(work, &response),
        Manner::AcceptsThenDrops | Manner::CancelUnreachable => Answer::Dropped,
        Manner::ResultOnSecondTry
        | Manner::Honest
        | Manner::NeverEnds
        | Manner::Flips
        | Manner::Forgets
        | Manner::ForgetsNowAndThen
        | Manner::LiesAboutProgress
        | Manner::Regresses
        | Manner::RefusesCancel
        | Manner::CancelsLate
        | Manner::CallbackRepeats
        | Manner::CallbackContradicts
        | Manner::CallbackBeforeAnswer
        | Manner::CallbackLate
        | Manner::CallbackForged
        | Manner::CallbackNever => response.into(),
    }
}

/// Whether a start is taken at all: a service that is busy at the start has not accepted. `refused_before` counts its refusals.
pub fn accepts(work: &Work, refused_before: u32) -> Result<(), Answer> {
    if !misbehaves(work, Occasion::Start, refused_before) {
        return Ok(());
    }
    let manner = work.script.manner;
    if manner == Manner::RateLimited429 {
        return Err(refused(429, "rate_limited").into());
    }
    if manner == Manner::Overloaded503 {
        return Err(refused(503, "overloaded").into());
    }
    Ok(())
}

fn misbehaves(work: &Work, occasion: Occasion, turn: u32) -> bool {
    let script = &work.script;
    let sheet = script.manner.sheet();
    let bad_answers = script.bad_answers.or(sheet.bad_answers);
    script.at.unwrap_or(sheet.at) == occasion && bad_answers.is_none_or(|limit| turn < limit)
}

/// A status that would be fine if it were a thousandth of its size.
fn huge(work: &Work, measures: &Measures) -> Answer {
    Answer::Flood {
        prefix: format!(r#"{{"id":"{}","state":"running","message":""#, work.id).into_bytes(),
        filler: b'a',
        count: measures.huge_body_bytes,
        suffix: br#""}"#.to_vec(),
    }
}

fn bomb(work: &Work, measures: &Measures) -> Answer {
    let prefix = format!(r#"{{"id":"{}","state":"running","message":""#, work.id);
    let body = gzip_bomb(prefix.as_bytes(), b'a', measures.bomb_bytes, br#""}"#);
    let headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Response { status: 200, headers, body }.into()
}

fn redirect(target: &str) -> Answer {
    Response::refusal(302, "moved", "look there").with("Location", target).into()
}

fn own_path(work: &Work, occasion: Occasion) -> String {
    match occasion {
        Occasion::Start => "/work".to_owned(),
        Occasion::Status => format!("/work/{}", work.id),
        Occasion::Result => format!("/work/{}/result", work.id),
        Occasion::Cancel => format!("/work/{}/cancel", work.id),
    }
}

fn wrong_length(response: &Response, variant: usize) -> Answer {
    let right = response.body.len();
    let lines = [
        format!("Content-Length: {}\r\n", right + 100),
        format!("Content-Length: {}\r\n", right / 2),
        "Content-Length: -1\r\n".to_owned(),
        format!("Content-Length: {right}\r\nContent-Length: {}\r\n", right / 2),
        "Content-Length: 99999999999999999999\r\n".to_owned(),
    ];
    Answer::Bytes(response.bytes_with(&lines[variant % lines.len()]), Then::Close)
}

fn refused(status: u16, code: &str) -> Response {
    Response::refusal(status, code, "come back later").with("Retry-After", "1")
}

fn twice(work: &Work, response: &Response) -> Answer {
    let error = json!({"code": "second_answer", "message": "nobody asked for this"});
    let second = Response::json(200, &json!({"id": work.id, "state": "failed", "error": error}));
    let mut bytes = response.bytes();
    bytes.extend(second.bytes());
    Answer::Bytes(bytes, Then::KeepOpen)
}
