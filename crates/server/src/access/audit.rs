//! The audit log: what the answers do not tell apart. Facts are for changes; this is for what was refused.
//!
//! Lines are limited per second, so that whoever guesses ids cannot fill a disk.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Lines per second.
const LINES_PER_SECOND: u32 = 50;

/// Why a request was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// There is no such record.
    Absent,
    /// There is one, but not for this token.
    NotVisible,
    /// The token does not allow it.
    Forbidden,
    /// The attempt that it is about is not current any more.
    Stale,
    /// The work cannot be stopped.
    NotCancelable,
    /// No token, or a wrong one.
    Unauthenticated,
}

#[derive(Default)]
pub(crate) struct Audit {
    window: Mutex<Window>,
}

#[derive(Default)]
struct Window {
    began: Option<Instant>,
    lines: u32,
    dropped: u64,
}

impl Audit {
    /// Writes one line, unless there were too many in this second.
    pub(crate) fn note(&self, actor: &str, operation: &'static str, record: &str, verdict: Verdict) {
        let Some(dropped) = self.admit() else { return };
        let verdict = match verdict {
            Verdict::Absent => "absent",
            Verdict::NotVisible => "not_visible",
            Verdict::Forbidden => "forbidden",
            Verdict::Stale => "stale_attempt",
            Verdict::NotCancelable => "not_cancelable",
            Verdict::Unauthenticated => "unauthenticated",
        };
        tracing::info!(target: "audit", actor, operation, record, verdict, dropped, "refused");
    }

    /// How many lines were dropped before this one; none if this one is dropped too.
    fn admit(&self) -> Option<u64> {
        let mut window = self.window.lock().expect("no holder of the lock panics");
        let now = Instant::now();
        if window.began.is_none_or(|began| now.duration_since(began) >= Duration::from_secs(1)) {
            window.began = Some(now);
            window.lines = 0;
        }
        if window.lines >= LINES_PER_SECOND {
            window.dropped += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.dropped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let audit = Audit::default();
        let admitted = (0..1_000).filter(|_| audit.admit().is_some()).count();
        assert!(admitted < 200, "{admitted}");
        assert!(audit.window.lock().unwrap().dropped > 0);
    }
}
