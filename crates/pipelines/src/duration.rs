//! How long, in a pipeline: a number of seconds, or a duration such as `90s`, `5m` or `1h30m`.

use domain::duration;

use super::written::{What, Written, Wrong};

/// The seconds that are written here, within these bounds.
pub(super) fn seconds(written: &Written, least: u64, most: u64) -> Result<u64, Wrong> {
    let seconds = match &written.what {
        What::Number(number) => number.as_u64(),
        What::Text(text) => duration::seconds(text),
        What::Nothing | What::Flag(_) | What::List(_) | What::Keys(_) => None,
    };
    let Some(seconds) = seconds else {
        return Err(written.wrong("a number of seconds or a time such as 30s, 5m or 24h is expected here"));
    };
    if (least..=most).contains(&seconds) {
        return Ok(seconds);
    }
    Err(written.wrong(format!("must be {least} to {most} seconds, and is {seconds}")))
}
