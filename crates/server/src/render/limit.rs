//! A limit of the host in the words of the wire, and in a sentence for people.

use api::ReachedLimit;
use domain::limit::{Clamp, FIXED, LimitValue, NamedLimit};

use crate::clock_text::text;

/// What stands before the sentence about a limit that ended something.
pub(crate) const ENDED_BY_A_LIMIT: &str = "a limit ended it";

/// The limit as it is sent.
pub(crate) fn shown(limit: NamedLimit) -> ReachedLimit {
    ReachedLimit {
        limit: limit.name.into_owned(),
        value: match limit.value {
            LimitValue::At(at) => text(at),
            LimitValue::Seconds(seconds) => format!("{seconds} s"),
            LimitValue::Millis(millis) => format!("{millis} ms"),
            LimitValue::Attempts(1) => "1 attempt".to_owned(),
            LimitValue::Attempts(count) => format!("{count} attempts"),
            LimitValue::Polls(count) => format!("{count} status polls"),
            LimitValue::Bytes(bytes) => format!("{bytes} bytes"),
            LimitValue::Count(count) => count.to_string(),
        },
        whose: limit.owner.as_str().to_owned(),
        key: limit.key,
    }
}

/// What was asked for and granted otherwise, as it is sent.
pub(crate) fn clamp(clamp: Clamp) -> api::Clamp {
    api::Clamp {
        limit: clamp.limit.to_owned(),
        asked_seconds: clamp.asked_seconds,
        granted_seconds: clamp.granted_seconds,
    }
}

/// The limit, its value, whose it is and the key that changes it.
pub(crate) fn sentence(limit: &ReachedLimit) -> String {
    let ReachedLimit { limit, value, whose, key } = limit;
    if key == FIXED {
        return format!("{limit} = {value} ({whose}); it is the same for all work and cannot be changed");
    }
    format!("{limit} = {value} ({whose}); change {key}")
}
