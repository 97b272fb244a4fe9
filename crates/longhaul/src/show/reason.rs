//! What the short reasons of the record mean, in words.

/// A reason in words; the reason itself if it is not one of the rules' own.
pub fn in_words(reason: &str) -> String {
    let words = match reason {
        "runner_interrupted" => {
            "whoever did it was not heard of before the lease ended, and no attempt is left; `longhaul jobs why` names them, \
             `longhaul jobs retry` makes another attempt"
        }
        "lease_lost" => "whoever did it was not heard of before the lease ended",
        "deadline_elapsed" => "its time was over before it was",
        "cancel_unconfirmed" => "it was asked to stop and did not confirm it in time; it may still run",
        "cancel_unconfirmed_lease_lost" => {
            "it was asked to stop, and whoever did it was not heard of before it could confirm it"
        }
        "missing_target" => "it names no executor, peer or folder",
        other => return other.to_owned(),
    };
    format!("{reason}: {words}")
}
