//! What makes it happen: `execute(order)` is the only way to the ledger, and the workers are what happens by itself.
//!
//! Load, decide with its consequences, commit, and once more on a conflict. The clock is read in `runtime/clock.rs` and
//! randomness made in `runtime/ids.rs`, nowhere else.

pub mod accept;
mod attempts;
mod commit_watches;
mod driver;
mod engine;
mod error;
mod executors;
mod node;
mod order;
mod plan;
mod polls;
mod preparation;
mod pulls;
mod results;
mod runtime;
mod siblings;
mod specialist;
pub mod testing;
mod workers;
pub(crate) use commit_watches::{asks_watched, changes, commit_log, wakes};
pub(crate) use node::{lane_limits, membership, neighbours, presences, standing};
pub(crate) use results::{
    echoed_code, echoed_text, hint_text, kept, lost, plugin_state, produced, stale_reports,
};
pub(crate) use runtime::{clock, ids, locked, spawn, timekeeper};
pub(crate) use specialist::link;

pub use asks_watched::{AskTopic, AskWatch, AsksWatched};
pub use attempts::{Attempts, DOER, RunOrder};
pub use changes::{Changes, Watched};
pub use clock::{
    BootClock, Clock, ClockStatus, ManualClock, Measured, SharedClock, SystemClock, Timer, boot_clock,
    clock_steps, rounded_seconds, sleep_through,
};
pub use driver::{Daemon, DaemonSettings, Dispatching, drive_for_good};
pub use echoed_code::is_code_character;
pub use engine::{CommitWatch, Engine, Evidence};
pub use error::EngineError;
pub use executors::{
    Approval, Contract, Executor, Executors, Gated, InputSchema, LeftOut, Misfit, ModeSupport, Modes,
    Registered, hint,
};
pub use hint_text::hint_text;
pub use ids::{Ids, RandomIds};
pub use kept::Bodies;
pub use lane_limits::{LaneLimits, SERIAL};
pub use link::{AttemptControl, Intended, Intent, Leftover, Link, Progress, Stop};
pub use membership::{Agreement, Jumped, Membership, verdict};
pub use order::{Order, OrderBody, OrderKey, Outcome, RenderAnswer};
pub use plugin_state::{JsonObject, StateChange, StateUpdate, object_text};
pub use polls::Polls;
pub use preparation::{FollowUps, Preparation, PreparationFuture, Stage, WorkResult};
pub use presences::{MAX_HEARD, Presences, Waits};
pub use produced::{Deferral, Emitted, Failure, FailureCause, Output, Polled, Produced};
pub use pulls::{Beat, Handed, Held, MAX_WAITING, PulledLane, Puller, Pulls};
pub use spawn::{OnRuntime, Spawn, Task};
pub use specialist::{
    Admission, Assignment, CancelReply, ExecutorTraits, ForeignWork, Outside, SignedWebhook, Specialist,
    Unfit,
};
pub use stale_reports::StaleReports;
pub use standing::{MayTake, Standing};
pub use timekeeper::{TimeKeeper, move_timers};
pub use wakes::Wakes;
pub use workers::{
    AttendJobs, DispatchJobs, HandOutJobs, Next, NotePresence, PollOperations, RouteEvents, Worker,
};
