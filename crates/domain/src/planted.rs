//! The bug museum: defects that can be switched on in a test build, to see the checkers catch them.
//!
//! Without the feature `planted-bugs` every exhibit is compiled away.

/// One line per planted defect: what goes wrong, and its name.
macro_rules! bugs {
    ($($(#[$doc:meta])* $Bug:ident,)+) => {
        /// One planted defect.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($(#[$doc])* $Bug,)+
        }

        impl Bug {
            /// Every exhibit.
            pub const ALL: [Self; [$(stringify!($Bug)),+].len()] = [$(Self::$Bug),+];
        }
    };
}

bugs! {
    /// A report is taken from any attempt.
    AttemptNotChecked,
    /// A report is accepted from someone to whom the attempt was not handed.
    ReportOfAnotherAccepted,
    /// A report passes a gate that waits for an answer.
    GatePassedByReport,
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
    /// Another attempt begins although all of them were made.
    AttemptsUnbounded,
    /// What a worker reports as a failure is handed out again, as if the worker was lost.
    ReportedFailureHandedOutAgain,
    /// The router settles an event that is left to those who claim it.
    RouterSettlesForClaimants,
    /// Work that waits for its time is dispatched at once.
    DispatchedEarly,
    /// A failure is tried again although someone asked to stop.
    RetriedAfterCancel,
    /// A cancel is given up before its time is over.
    CancelTimedOutEarly,
    /// A cancel is said to be sent although nobody was sent anything.
    CancelSaidToBeSent,
    /// Work that cannot be stopped is cancelled when the time limit of a cancel is over, and goes on outside.
    UncancelableTimedOut,
    /// Work that was never dispatched is cancelled by a time limit, and its worker goes on.
    UnmanagedCancelTimedOut,
    /// Failed work is done again although someone has asked to stop it.
    RetriedAfterLateCancel,
    /// A late report replaces a failure, not only a lost lease.
    LateReportReplacesFailure,
    /// Work is done again although what it was asked to do is deleted.
    PurgedDoneAgain,
    /// Who asks to stop a job does not reach the work that it waits for outside.
    CancelNotPassedOn,
    /// A job that ends leaves the operation that it waited for open.
    OperationNotAbandoned,
    /// The end of an operation is not told to its job.
    EndNotTold,
    /// An operation may live longer than its job.
    OperationOutlivesJob,
    /// An operation is polled more often than it is granted.
    PollsUnbounded,
    /// After a poll that failed the next one is made at once.
    ErrorPolledAgainAtOnce,
    /// Whoever takes over has the claim version of whoever held it.
    ClaimVersionReused,
    /// A lane gives out what came last.
    YoungestFirst,
    /// An idempotency key goes with its record, whatever it was kept for.
    KeyGoesWithRecord,
    /// The positions of facts that went are given again.
    PositionGivenTwice,
    /// Of a commit on several records only the first is written.
    CommitNotWhole,
    /// Bodies are written with the first fact of a record only.
    BodiesForgotten,
    /// A record is decided at the caller's time, also if it was changed later.
    TimeGoesBack,
    /// Work that became ready wakes nobody.
    WakeLost,
    /// An event says that it started a run, and there is none.
    RunNotStarted,
    /// The key of an event is not looked at.
    DedupeForgotten,
    /// A run under a key is named after its event: two that start it at once start two.
    RunNamedAfterItsEvent,
    /// That a job has ended is told to no pipeline that listens.
    EndNotPublished,
    /// Events that a commit has no room to settle are not published.
    WaitingEventForgotten,
    /// The end of a job is not told to its run.
    StepEndNotTold,
    /// An end that follows from another end is told to nobody.
    EndOfEndNotTold,
    /// What comes with the result of work outside is dropped.
    PollHandsNothingOver,
    /// The end of a job that is in the commit of its sibling is not told to their run.
    SiblingEndNotTold,
    /// The end of a step is taken again, although its run has moved on.
    StepEndedTwice,
    /// A run that was stopped begins what follows.
    StepBegunAfterCancel,
    /// The request to stop a run reaches the first of its jobs, and the rest is forgotten.
    CancelCursorForgotten,
    /// What follows a group waits for its first branch alone.
    JoinDoesNotWait,
    /// A run whose step failed is completed.
    FailureOverlooked,
    /// A step is done again, although something was made of its failure.
    HandledStepReopened,
    /// An event or a run that waits wakes nobody.
    RoutingWakeLost,
    /// A step of the wall clock is taken for time that passed.
    StepBelievedAtOnce,
    /// A step of the wall clock is never adopted, however long it lasts.
    StepNotAdopted,
    /// Store time jumps, and the leases of live holders are over.
    LeasesNotMoved,
    /// Store time jumps, and the lives of operations are over.
    LivesNotMoved,
    /// A time that was read before a step back is believed after it.
    TimeBeforeStepBackBelieved,
    /// A step counts from the first glitch on, although the wall clock was right in between.
    GlitchRemembered,
    /// The time of a suspend is not counted.
    SuspendNotCounted,
    /// After a step back only what is held is moved.
    TimersNotMovedBack,
    /// A due time that a caller gave is moved with store time.
    TimeOfDayMoved,
    /// The bytes of a body are given out without a look at their digest.
    BodyNotChecked,
    /// A poll that hung counts as one that was answered.
    HungCountsAsAnswered,
    /// Stale reports beyond those that are stored are not counted.
    StaleReportNotCounted,
    /// A node corrects the shared clock by a step that most nodes do not see.
    CorrectedWithoutMajority,
    /// A node whose machine has the odd clock never follows the store's.
    OddClockNotFollowed,
    /// Nodes that all see different steps wait for each other for ever.
    DisagreementNotEnded,
    /// A checkpoint holds the state after the facts of its commit, which are folded into it once more.
    CheckpointOfLaterState,
    /// A checkpoint goes with the facts before it.
    CheckpointDropsItself,
    /// The bodies that a state names go with the facts before its checkpoint.
    CheckpointTakesBodies,
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
