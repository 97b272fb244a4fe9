//! What makes it happen: `execute(order)` is the only way to the ledger, and the workers are what happens by itself.
//!
//! Load, decide with its consequences, commit, and once more on a conflict. The clock is read in `clock.rs` and
//! randomness made in `ids.rs`, nowhere else.

mod asks_watched;
mod attempts;
mod changes;
mod clock;
mod commit_log;
mod driver;
mod early;
mod engine;
mod error;
mod executors;
mod hint_text;
mod ids;
mod kept;
mod lane_limits;
mod link;
pub mod mac;
mod membership;
mod mistake;
mod mount_points;
mod neighbours;
mod order;
pub mod outbound;
pub mod pipelines;
mod plan;
mod plugin_state;
mod polls;
mod presences;
mod produced;
mod pulls;
mod routing;
mod schema;
mod spawn;
mod specialist;
mod stale_reports;
mod standing;
mod timekeeper;
mod wakes;
mod webhook;
mod workers;
mod workspaces;

pub use asks_watched::{AskTopic, AskWatch, AsksWatched};
pub use attempts::{Attempts, DOER, RunOrder};
pub use changes::{Changes, Watched};
pub use clock::{
    Clock, ClockStatus, ManualClock, Measured, SharedClock, SystemClock, Timer, boot_clock, rounded_seconds,
    sleep_through,
};
pub use driver::{Daemon, DaemonSettings, Dispatching, drive_for_good};
pub use engine::{CommitWatch, Engine};
pub use error::EngineError;
pub use executors::{
    Approval, Contract, Executor, Executors, Gated, LeftOut, ModeSupport, Modes, Registered, backend, http,
    plugin, process,
};
pub use ids::{Ids, RandomIds};
pub use lane_limits::{LaneLimits, SERIAL};
pub use link::{Intended, Intent, Link, Progress, Stop};
pub use membership::Membership;
pub use mistake::{Mistake, hint};
pub use order::{Order, OrderBody, OrderKey, Outcome, RenderAnswer};
pub use plugin_state::{StateChange, StateUpdate};
pub use polls::Polls;
pub use presences::{MAX_HEARD, Presences, Waits};
pub use produced::{Deferral, Emitted, Failure, Output, Polled, Produced};
pub use pulls::{Beat, Handed, Held, MAX_WAITING, PulledLane, Puller, Pulls};
pub use routing::{Router, event_id_of_key, run_id_of};
pub use schema::{Misfit, Schema};
pub use spawn::{OnRuntime, Spawn, Task};
pub use specialist::{Admission, Assignment, CancelReply, ForeignWork, Outside, Specialist, Unfit};
pub use stale_reports::StaleReports;
pub use standing::{MayTake, Standing};
pub use timekeeper::{TimeKeeper, move_timers};
pub use wakes::Wakes;
pub use webhook::{SignedWebhook, verify_webhook, webhook_key};
pub use workers::{
    AttendJobs, DispatchJobs, HandOutJobs, Next, NotePresence, PollOperations, RouteEvents, Worker,
};
pub use workspaces::{KeptRun, LOOK_AFTER_ATTEMPTS, Reach, TreeLimits, WorkspaceSettings, Workspaces};
