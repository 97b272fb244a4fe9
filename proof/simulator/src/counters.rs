//! What happened in a run: faults, and the situations that a batch must have seen to prove anything.

use std::ops::AddAssign;

/// A situation that must occur somewhere in a batch; a batch without one of them is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sometimes {
    /// A record was taken from an owner whose node lives.
    TakeOverWhileHolderLives,
    /// A report of a stale attempt was refused.
    StaleResultRefused,
    /// A create happened and its answer was lost.
    AmbiguousCreate,
    /// A dispatch happened and its answer was lost.
    AmbiguousDispatch,
    /// A finish happened and its answer was lost.
    AmbiguousFinish,
    /// A node died between reading a record and writing it.
    CrashBetweenLoadAndCommit,
    /// A node died while it recovered from the last crash.
    CrashInRecovery,
    /// A job was finished although a cancel was pending, or a finish came after the cancel.
    CancelRacingFinish,
    /// A job or an operation was finished outside, and its time was over first.
    ExpiryRacingCompletion,
    /// A client's message came twice.
    DuplicateClientMessage,
    /// A lease was renewed in its last second.
    RenewedInLastSecond,
    /// A call to the store took longer than a lease.
    StoreSlowerThanLease,
    /// A late report replaced `unavailable`.
    LateReportAfterUnavailable,
    /// A service said something else after the end.
    ContradictionRecorded,
    /// A handle came after its job had moved on, and what may run outside was written down.
    OrphanWrittenDown,
    /// Nobody knew whether a service had taken the work, and that was written down.
    SubmitOutcomeUnknown,
    /// A commit under an old fence was refused.
    CommitFenced,
    /// A key was used again for the same request.
    KeyReplayed,
    /// A key was used again for another request.
    KeyReusedForAnother,
    /// A paused owner came back after its lease.
    ResumedAfterLease,
    /// A record was kept long enough and went.
    RecordRetired,
    /// An event that was known already was published again.
    EventToldAgain,
    /// An event was settled by another node than the one that had accepted it.
    EventRoutedElsewhere,
    /// A node died with an event or a run in its hands that it had taken to route.
    CrashBetweenTakeAndSettle,
    /// An event was settled and the answer was lost.
    AmbiguousSettle,
    /// An event started nothing because the same work was there under its key.
    DuplicateCollapsed,
    /// Two started the same work under one key at once, and the second found out at its commit.
    SameRunAtOnce,
    /// A step began in the commit that ended the one before it.
    StepBegunWithReport,
    /// A step was begun by a worker that found it waiting.
    StepBegunByWorker,
    /// A step that had failed was done again in its run.
    StepReopened,
    /// What stands in for a failed step began.
    FailureMended,
    /// A step emitted an event.
    EventEmitted,
    /// An event that a step emitted was settled in a commit of its own.
    EventWaited,
    /// The end of a job was an event.
    EndPublished,
    /// A run came to its end with all of its steps done.
    RunCompleted,
    /// A run came to its end without.
    RunFailed,
    /// A run was stopped.
    RunCancelled,
    /// A run was asked to stop, and more of its jobs were in a later commit.
    CancelContinued,
    /// A damaged body was read, and its reader was told.
    DamagedBodyRefused,
    /// Operations that hung held as many slots of a service as they may.
    HungHeldTheirHalf,
    /// Stale reports were counted that left no evidence.
    StaleReportsCounted,
    /// A record wrote a checkpoint, and its older facts went.
    OlderFactsGone,
}

impl Sometimes {
    /// Every situation.
    pub const ALL: [Self; 42] = [
        Self::TakeOverWhileHolderLives,
        Self::StaleResultRefused,
        Self::AmbiguousCreate,
        Self::AmbiguousDispatch,
        Self::AmbiguousFinish,
        Self::CrashBetweenLoadAndCommit,
        Self::CrashInRecovery,
        Self::CancelRacingFinish,
        Self::ExpiryRacingCompletion,
        Self::DuplicateClientMessage,
        Self::RenewedInLastSecond,
        Self::StoreSlowerThanLease,
        Self::LateReportAfterUnavailable,
        Self::ContradictionRecorded,
        Self::OrphanWrittenDown,
        Self::SubmitOutcomeUnknown,
        Self::CommitFenced,
        Self::KeyReplayed,
        Self::KeyReusedForAnother,
        Self::ResumedAfterLease,
        Self::RecordRetired,
        Self::EventToldAgain,
        Self::EventRoutedElsewhere,
        Self::CrashBetweenTakeAndSettle,
        Self::AmbiguousSettle,
        Self::DuplicateCollapsed,
        Self::SameRunAtOnce,
        Self::StepBegunWithReport,
        Self::StepBegunByWorker,
        Self::StepReopened,
        Self::FailureMended,
        Self::EventEmitted,
        Self::EventWaited,
        Self::EndPublished,
        Self::RunCompleted,
        Self::RunFailed,
        Self::RunCancelled,
        Self::CancelContinued,
        Self::DamagedBodyRefused,
        Self::HungHeldTheirHalf,
        Self::StaleReportsCounted,
        Self::OlderFactsGone,
    ];
}

/// A class of fault, counted when it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Struck {
    /// A call was refused before it had an effect.
    Refused,
    /// A call had its effect and its answer was lost.
    AnswerLost,
    /// A call was slow.
    Slow,
    /// A commit was told of a conflict that was none.
    SpuriousConflict,
    /// A call was told that the store is busy.
    Busy,
    /// A node died.
    Crash,
    /// A node stood still.
    Pause,
    /// A node and the store were cut off from each other.
    Partition,
    /// A clock jumped.
    ClockJump,
    /// A connector misbehaved.
    Connector,
    /// An executor or a peer misbehaved.
    Executor,
    /// A message came twice or late.
    Message,
    /// A stored body was damaged.
    Damage,
}

impl Struck {
    /// Every class.
    pub const ALL: [Self; 13] = [
        Self::Refused,
        Self::AnswerLost,
        Self::Slow,
        Self::SpuriousConflict,
        Self::Busy,
        Self::Crash,
        Self::Pause,
        Self::Partition,
        Self::ClockJump,
        Self::Connector,
        Self::Executor,
        Self::Message,
        Self::Damage,
    ];
}

/// Counts of one run, or of a batch of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    sometimes: [u64; Sometimes::ALL.len()],
    struck: [u64; Struck::ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self { sometimes: [0; Sometimes::ALL.len()], struck: [0; Struck::ALL.len()] }
    }
}

impl Counters {
    /// Counts a situation.
    pub fn saw(&mut self, situation: Sometimes) {
        self.sometimes[situation as usize] += 1;
    }

    /// Counts a fault.
    pub fn struck(&mut self, class: Struck) {
        self.struck[class as usize] += 1;
    }

    /// How often each situation occurred.
    pub fn situations(&self) -> impl Iterator<Item = (Sometimes, u64)> {
        Sometimes::ALL.into_iter().zip(self.sometimes)
    }

    /// How often this situation occurred.
    pub fn count(&self, situation: Sometimes) -> u64 {
        self.sometimes[situation as usize]
    }

    /// How often each class of fault struck.
    pub fn faults(&self) -> impl Iterator<Item = (Struck, u64)> {
        Struck::ALL.into_iter().zip(self.struck)
    }

    /// The situations that never occurred.
    pub fn missing(&self) -> Vec<Sometimes> {
        self.situations().filter(|(_, count)| *count == 0).map(|(situation, _)| situation).collect()
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in self.sometimes.iter_mut().zip(other.sometimes) {
            *count += more;
        }
        for (count, more) in self.struck.iter_mut().zip(other.struck) {
            *count += more;
        }
    }
}
