//! What a worker knows of due times without a question to the store: while nothing is due, nothing is asked.
//!
//! A worker may gather: what becomes due within the same few milliseconds is then asked for together, at their end.

use std::sync::Mutex;

use domain::Timestamp;
use domain::time::earliest;

use super::Next;
use crate::locked::Locked;

/// The earliest due time, if it is known.
#[derive(Default)]
pub(super) struct DueTimes {
    known: Mutex<Known>,
    /// The length of the spans whose due times are gathered, in microseconds; 0 if each counts at once.
    gathered_micros: i64,
}

#[derive(Clone, Copy, Default)]
enum Known {
    /// The store must be asked.
    #[default]
    Unknown,
    /// Nothing is due before; never, if absent.
    NothingBefore(Option<Timestamp>),
}

impl DueTimes {
    /// Nothing is known, and what becomes due within spans of this length is gathered.
    pub(super) fn gathering(micros: i64) -> Self {
        Self { known: Mutex::default(), gathered_micros: micros }
    }

    /// When to come back if nothing is due now; none if the store must be asked. `noted` is what commits have named since.
    pub(super) fn nothing_before(&self, now: Timestamp, noted: Option<Timestamp>) -> Option<Next> {
        let mut known = self.known.locked();
        if let Known::NothingBefore(at) = *known
            && let at = earliest(at, noted)
            && at.is_none_or(|at| now < self.span_end(at))
        {
            *known = Known::NothingBefore(at);
            return Some(self.next(at));
        }
        // Whatever goes wrong from here on, the store is asked again.
        *known = Known::Unknown;
        None
    }

    /// The store has said when the next one is due.
    pub(super) fn learned(&self, at: Option<Timestamp>) -> Next {
        *self.known.locked() = Known::NothingBefore(at);
        self.next(at)
    }

    fn next(&self, due_at: Option<Timestamp>) -> Next {
        due_at.map_or(Next::WhenWoken, |at| Next::At(self.span_end(at)))
    }

    /// The end of the span in which this time lies.
    fn span_end(&self, at: Timestamp) -> Timestamp {
        match at.micros().checked_rem_euclid(self.gathered_micros) {
            None | Some(0) => at,
            Some(into_span) => at.plus_micros(self.gathered_micros - into_span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_within_one_span_is_asked_for_at_its_end() {
        let (span, at) = (20_000, Timestamp::from_micros);
        let due_times = DueTimes::gathering(span);
        assert_eq!(due_times.nothing_before(at(0), None), None, "the store was never asked");
        assert_eq!(due_times.learned(Some(at(20_001))), Next::At(at(40_000)));
        assert_eq!(due_times.nothing_before(at(39_999), Some(at(30_000))), Some(Next::At(at(40_000))));
        assert_eq!(due_times.nothing_before(at(40_000), None), None);
    }

    #[test]
    fn what_is_due_at_the_edge_of_a_span_does_not_wait_for_the_next() {
        let due_times = DueTimes::gathering(20_000);
        assert_eq!(
            due_times.learned(Some(Timestamp::from_micros(40_000))),
            Next::At(Timestamp::from_micros(40_000))
        );
    }

    #[test]
    fn whoever_does_not_gather_comes_at_the_due_time_itself() {
        let at = Timestamp::from_micros(20_001);
        let due_times = DueTimes::default();
        assert_eq!(due_times.learned(Some(at)), Next::At(at));
        assert_eq!(due_times.nothing_before(at, None), None);
    }
}
