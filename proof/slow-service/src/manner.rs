//! The zoo: every way of answering that this service knows, by name.
//!
//! [`Manner::sheet`] says of each what it does and the one outcome that a host must come to; the README shows the same table.
//! What they do is in `zoo`; nothing here knows HTTP.

use serde::Deserialize;
use thiserror::Error;

/// How a piece of work is answered for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum Manner {
    /// Says how it is. The host comes to the outcome that was asked for.
    #[default]
    Honest,
    /// Is running for ever. The host expires it and lists an orphan.
    NeverEnds,
    /// After the end it says done, failed, done, ... The first end stays.
    Flips,
    /// Knows the work at the first status, never again. Unknown, and an orphan.
    Forgets,
    /// Does not know the work at every second status. Unknown, or done for a host that asks until expiry.
    ForgetsNowAndThen,
    /// Percentages that jump, are negative, over a hundred, no numbers. Done.
    LiesAboutProgress,
    /// Running, queued, running, ... Running stays; done.
    Regresses,
    /// Asks to be polled in three thousand years, or never, or before. Polled within the host's bounds; done.
    HostileRetryAfter,
    /// An answer far over any cap. Cut off; expired.
    HugeBody,
    /// A small answer that inflates over any cap. Cut off; expired.
    GzipBomb,
    /// A byte a second. Cut at the deadline; expired.
    Drips,
    /// Accepts the connection and never answers. Cut at the deadline; expired.
    Hangs,
    /// Resets the connection in the middle of an answer, three times. Done.
    Closes,
    /// Not JSON, wrong types, unknown states, deep nesting, doubled keys, bad UTF-8. Expired.
    Garbage,
    /// Redirects to addresses that only the host can reach. No connection there; expired.
    RedirectsToPrivate,
    /// Redirects to itself. A bounded number of hops; expired.
    RedirectLoop,
    /// The length of the answer is not the one that it states. Expired.
    WrongLength,
    /// 500, three times. Done.
    Error500,
    /// 429 with a time, three times; at the start it does not accept. Done.
    RateLimited429,
    /// 503 with a time, three times; at the start it does not accept. Done.
    Overloaded503,
    /// Each answer takes thirty seconds. Expired by a host that waits less; others are not delayed.
    Slow30s,
    /// Refuses to cancel and works on. The refusal is shown.
    RefusesCancel,
    /// The connection breaks whenever it is asked to cancel. Cancelled unconfirmed, and an orphan.
    CancelUnreachable,
    /// Accepts the cancel, runs on for some polls, then says cancelled. Cancelled, confirmed.
    CancelsLate,
    /// Two answers for one request, the second contradicting the first. The first counts; done.
    AnswersTwice,
    /// Takes the start and closes before it answers. Found by its key, never started twice; done.
    AcceptsThenDrops,
    /// Says done before the result can be had. Done with the result.
    ResultOnSecondTry,
    /// Sends the callback three times. Done once.
    CallbackRepeats,
    /// Sends the callback, then one that says the opposite. The first stays.
    CallbackContradicts,
    /// Sends the callback before the start is answered. Kept; done.
    CallbackBeforeAnswer,
    /// Sends the callback long after the end. The poll came first; it changes nothing.
    CallbackLate,
    /// Sends a callback with the opposite end and a wrong signature, and never a right one. The poller finds the end; done.
    CallbackForged,
    /// Promises a callback and sends none. The poller finds the end; done.
    CallbackNever,
}

/// What is written about a manner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// As it stands in a start.
    pub name: &'static str,
    /// What the service does.
    pub does: &'static str,
    /// Where a host must end.
    pub outcome: &'static str,
    /// At which request it misbehaves unless the start says otherwise.
    pub at: Occasion,
    /// How many bad answers it gives unless the start says otherwise; none means no end of them.
    pub bad_answers: Option<u32>,
}

/// At which request the service misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// `POST /work`.
    Start,
    /// `GET /work/{id}` and the lookup by key.
    Status,
    /// `GET /work/{id}/result`.
    Result,
    /// `POST /work/{id}/cancel`.
    Cancel,
}

/// A name that is in no zoo.
#[derive(Debug, Error)]
#[error("no manner is called {0}; GET /zoo lists them")]
pub struct UnknownManner(String);

impl Manner {
    /// All of them.
    pub const ALL: [Self; 33] = [
        Self::Honest,
        Self::NeverEnds,
        Self::Flips,
        Self::Forgets,
        Self::ForgetsNowAndThen,
        Self::LiesAboutProgress,
        Self::Regresses,
        Self::HostileRetryAfter,
        Self::HugeBody,
        Self::GzipBomb,
        Self::Drips,
        Self::Hangs,
        Self::Closes,
        Self::Garbage,
        Self::RedirectsToPrivate,
        Self::RedirectLoop,
        Self::WrongLength,
        Self::Error500,
        Self::RateLimited429,
        Self::Overloaded503,
        Self::Slow30s,
        Self::RefusesCancel,
        Self::CancelUnreachable,
        Self::CancelsLate,
        Self::AnswersTwice,
        Self::AcceptsThenDrops,
        Self::ResultOnSecondTry,
        Self::CallbackRepeats,
        Self::CallbackContradicts,
        Self::CallbackBeforeAnswer,
        Self::CallbackLate,
        Self::CallbackForged,
        Self::CallbackNever,
    ];

    /// As it stands in a start.
    pub const fn name(self) -> &'static str {
        self.sheet().name
    }

    /// What is written about it.
    pub const fn sheet(self) -> Sheet {
        match self {
            Self::Honest => sheet("honest", "says how it is", "the outcome that was asked for"),
            Self::NeverEnds => sheet("never_ends", "is running for ever", "expired; on the orphan list until the cancel is confirmed"),
            Self::Flips => sheet(
                "flips",
                "after the end says done, failed, done, ... (or the reverse)",
                "the first end; the others are evidence only",
            ),
            Self::Forgets => sheet("forgets", "404 from the second status on", "unknown; on the orphan list"),
            Self::ForgetsNowAndThen => sheet(
                "forgets_now_and_then",
                "404 at every second status",
                "unknown at the first 404; done where the policy is retry-until-expiry",
            ),
            Self::LiesAboutProgress => sheet(
                "lies_about_progress",
                "90, 10, 250, -5, \"NaN\", 1e308, null, a list",
                "done; the lies change no state",
            ),
            Self::Regresses => {
                sheet("regresses", "running, queued, running, ... until the end", "running is kept; done")
            }
            Self::HostileRetryAfter => sheet(
                "hostile_retry_after",
                "Retry-After of 99999999999, the year 9999, the past, -5, 0, soon, NaN, 1e308, nothing",
                "each next poll within the host's bounds; done",
            ),
            Self::HugeBody => sheet(
                "huge_body",
                "a status of 256 MiB",
                "cut at the body cap, a poll error each time; expired",
            ),
            Self::GzipBomb => sheet(
                "gzip_bomb",
                "a small gzip status that inflates to 256 MiB",
                "cut at the cap on inflated bytes, a poll error each time; expired",
            ),
            Self::Drips => {
                sheet("drips", "a byte a second", "cut at the deadline of one poll, each time; expired")
            }
            Self::Hangs => sheet(
                "hangs",
                "accepts the connection, never answers",
                "cut at the deadline of one poll, each time; expired",
            ),
            Self::Closes => {
                sheet("closes", "resets the connection in mid-answer, three times", "poll errors, then done").times(3)
            }
            Self::Garbage => sheet(
                "garbage",
                "not JSON, wrong types, unknown state, deep nesting, doubled keys, invalid UTF-8, empty",
                "a poll error each time; expired",
            ),
            Self::RedirectsToPrivate => sheet(
                "redirects_to_private",
                "302 to 169.254.169.254, [::1], file:, 127.0.0.1 in disguise, or `redirect_to`",
                "no connection there, a poll error each time; expired",
            ),
            Self::RedirectLoop => sheet(
                "redirect_loop",
                "302 to itself",
                "a bounded number of hops, a poll error each time; expired",
            ),
            Self::WrongLength => sheet(
                "wrong_length",
                "Content-Length too long, too short, no number, two that differ",
                "a poll error each time; expired",
            ),
            Self::Error500 => sheet("error_500", "500 three times", "poll errors, then done").times(3),
            Self::RateLimited429 => sheet(
                "rate_limited_429",
                "429 with Retry-After three times; at the start nothing is accepted",
                "poll errors, then done; at the start never taken as accepted",
            ).times(3),
            Self::Overloaded503 => sheet(
                "overloaded_503",
                "503 with Retry-After three times; at the start nothing is accepted",
                "poll errors, then done; at the start never taken as accepted",
            ).times(3),
            Self::Slow30s => sheet(
                "slow_30s",
                "each status takes 30 s",
                "cut at the deadline of one poll, each time; expired; other services are polled in time",
            ),
            Self::RefusesCancel => sheet(
                "refuses_cancel",
                "409 to a cancel, and works on",
                "the refusal is on record; the work's own end, or cancelled unconfirmed and an orphan at the time limit",
            ).at(Occasion::Cancel),
            Self::CancelUnreachable => sheet(
                "cancel_unreachable",
                "closes the connection at every cancel, and works on",
                "tried again with pauses; cancelled unconfirmed and an orphan at the time limit",
            ).at(Occasion::Cancel),
            Self::CancelsLate => sheet(
                "cancels_late",
                "202 to a cancel, running for three more statuses, then cancelled",
                "cancelled, confirmed",
            ),
            Self::AnswersTwice => sheet(
                "answers_twice",
                "sends a second, contradicting answer behind the first",
                "the first counts and the second is nobody's answer; done",
            ),
            Self::AcceptsThenDrops => sheet(
                "accepts_then_drops",
                "takes the start, closes before the answer",
                "found or repeated under the same key, one start; done (else submit_outcome_unknown, an orphan)",
            ).at(Occasion::Start).times(1),
            Self::ResultOnSecondTry => sheet(
                "result_on_second_try",
                "says done without the result; it is there at the next request",
                "done with the result",
            ),
            Self::CallbackRepeats => sheet("callback_repeats", "the callback three times", "done, once"),
            Self::CallbackContradicts => sheet(
                "callback_contradicts",
                "the callback, then one with the opposite end",
                "the first end; the other is evidence only",
            ),
            Self::CallbackBeforeAnswer => sheet(
                "callback_before_answer",
                "the callback before the start is answered",
                "kept until the operation is known; done",
            ),
            Self::CallbackLate => sheet(
                "callback_late",
                "the callback long after the end",
                "done by a poll; the callback changes nothing",
            ),
            Self::CallbackForged => sheet(
                "callback_forged",
                "a callback with the opposite end under a wrong signature, and no right one",
                "refused where the service signs; done by a poll",
            ),
            Self::CallbackNever => {
                sheet("callback_never", "takes a callback address and uses it not", "done by a poll")
            }
        }
    }
}

impl TryFrom<String> for Manner {
    type Error = UnknownManner;

    fn try_from(name: String) -> Result<Self, UnknownManner> {
        Self::ALL.into_iter().find(|manner| manner.name() == name).ok_or(UnknownManner(name))
    }
}

impl Sheet {
    const fn at(self, at: Occasion) -> Self {
        Self { at, ..self }
    }

    const fn times(self, bad_answers: u32) -> Self {
        Self { bad_answers: Some(bad_answers), ..self }
    }
}

const fn sheet(name: &'static str, does: &'static str, outcome: &'static str) -> Sheet {
    Sheet { name, does, outcome, at: Occasion::Status, bad_answers: None }
}
