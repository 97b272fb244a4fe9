//! The bug museum: defects that can be switched on in a test build, to see the checkers catch them.
//!
//! Without the feature `planted-bugs` every exhibit is compiled away.

/// One planted defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A report is taken from any attempt.
    AttemptNotChecked,
    /// A take-over keeps the attempt's number.
    AttemptNumberReused,
    /// A cancel overwrites a terminal state.
    CancelOverwritesTerminal,
    /// A job may be dispatched again while it runs.
    DispatchFromAnyState,
    /// A connector's hint is used as it came.
    HintNotClamped,
    /// Each answer "pending" gives the operation a new life.
    ExpiryRearmed,
    /// The last terminal answer of an operation wins.
    LastAnswerWins,
    /// A lease is taken although it has not ended.
    LiveLeaseTaken,
    /// A commit's fence is not looked at.
    FenceNotChecked,
    /// An idempotency key is not unique.
    KeyNotUnique,
    /// The expected version is not looked at.
    VersionNotChecked,
    /// The view is not written when a job expires.
    ViewSkippedOnExpiry,
    /// A commit is acknowledged and not applied.
    AckWithoutApply,
    /// After an unknown outcome the command is decided anew, under new ids.
    UnknownOutcomeDecidedAnew,
    /// A job that expired leaves the agenda as it was.
    AgendaNotUpdated,
    /// What may have reached a service is forgotten when its job ends.
    IntentForgotten,
}

impl Bug {
    /// Every exhibit.
    pub const ALL: [Self; 16] = [
        Self::AttemptNotChecked,
        Self::AttemptNumberReused,
        Self::CancelOverwritesTerminal,
        Self::DispatchFromAnyState,
        Self::HintNotClamped,
        Self::ExpiryRearmed,
        Self::LastAnswerWins,
        Self::LiveLeaseTaken,
        Self::FenceNotChecked,
        Self::KeyNotUnique,
        Self::VersionNotChecked,
        Self::ViewSkippedOnExpiry,
        Self::AckWithoutApply,
        Self::UnknownOutcomeDecidedAnew,
        Self::AgendaNotUpdated,
        Self::IntentForgotten,
    ];
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Switches one defect on, or all off, for this thread.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    /// Whether this defect is switched on.
    pub fn planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(not(feature = "planted-bugs"))]
mod switch {
    /// No defect is ever switched on in a product build.
    #[inline]
    pub const fn planted(_: super::Bug) -> bool {
        false
    }
}

pub use switch::*;
