//! Work that goes on outside, in words: who has it, what they said last, and when they are asked next.

use api::Outside;

/// Who has it, how often they were asked, and when they are asked next.
pub(super) fn where_it_goes_on(outside: &Outside<'_>) -> String {
    let Outside { service, status, operation_id, polls, .. } = outside;
    let times = if *polls == 1 { "once".to_owned() } else { format!("{polls} times") };
    let next = outside.next_poll_at.as_deref().map(|at| format!(", next at {at}")).unwrap_or_default();
    format!("{status} at {service} ({operation_id}), asked {times}{next}, given up at {}", outside.expires_at)
}

/// What they said last for people, and when, unless they were asked in vain since then.
pub(super) fn last_answer(outside: &Outside<'_>) -> Option<String> {
    let hint = outside.progress_hint.as_deref()?;
    let at = outside.last_polled_at.as_deref().unwrap_or(&outside.dispatched_at);
    Some(if outside.last_error.is_some() { hint.to_owned() } else { format!("{hint} ({at})") })
}

/// What they asked for and were not granted.
pub(super) fn what_was_granted(outside: &Outside<'_>) -> Option<String> {
    let told = outside.clamps.iter().map(|clamp| {
        let api::Clamp { limit, asked_seconds, granted_seconds } = clamp;
        format!("{granted_seconds} s where {asked_seconds} s were asked for ({limit})")
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Why they could not be asked.
pub(super) fn last_error(outside: &Outside<'_>) -> Option<String> {
    let error = outside.last_error.as_ref()?;
    let told = if error.message.is_empty() { String::new() } else { format!(": {}", error.message) };
    Some(format!("{}{told} ({} in a row)", error.code, error.in_row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside() -> Outside<'static> {
        serde_json::from_value(serde_json::json!({
            "operation_id": "op-7", "service": "press", "status": "running", "progress_hint": "page 2 of 9", "polls": 3,
            "dispatched_at": "T0", "last_polled_at": "T3", "next_poll_at": "T4", "expires_at": "T9",
            "clamps": [{ "limit": "max_retry_after_seconds", "asked_seconds": 9999, "granted_seconds": 300 }],
            "last_error": { "code": "service_busy", "message": "later", "in_row": 2 },
        }))
        .unwrap()
    }

    #[test]
    fn everything_that_is_known_of_work_outside_is_told() {
        let outside = outside();
        assert_eq!(
            where_it_goes_on(&outside),
            "running at press (op-7), asked 3 times, next at T4, given up at T9"
        );
        assert_eq!(last_answer(&outside).as_deref(), Some("page 2 of 9"));
        let granted = "300 s where 9999 s were asked for (max_retry_after_seconds)";
        assert_eq!(what_was_granted(&outside).as_deref(), Some(granted));
        assert_eq!(last_error(&outside).as_deref(), Some("service_busy: later (2 in a row)"));
    }

    #[test]
    fn an_answer_has_the_time_of_the_last_question_if_that_was_answered() {
        let answered = Outside { last_error: None, ..outside() };
        assert_eq!(last_answer(&answered).as_deref(), Some("page 2 of 9 (T3)"));
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let fresh = Outside { progress_hint: None, last_error: None, polls: 0, ..outside() };
        assert_eq!((last_answer(&fresh), last_error(&fresh)), (None, None));
    }
}
