//! What goes over the wire: the shapes of every request and answer, and the codes of every problem.
//!
//! Shared by the server and by its clients. Nothing here decides, reads or sends. Users' JSON is carried as raw text, so that
//! 64-bit integers and everything else survive word for word.

pub mod ask;
pub mod capability;
pub mod claim;
pub mod clock;
pub mod event;
pub mod facts;
pub mod job;
pub mod json;
pub mod limits;
pub mod node;
pub mod orphan;
pub mod peer;
pub mod pipeline;
pub mod problem;
mod protocols;
pub mod pull;
pub mod run;
pub mod token;
pub use job::{batch, why};
pub use protocols::{deferred, ductile, sensorium};

pub use ask::{AckAsk, AckNamed, Ask, AskAnswer, AskList, AskOpened, AskWaited, CreateAsk, WaitAsk};
pub use batch::{BatchAnswer, BatchVerdict, CreateBatch};
pub use capability::{Capability, CapabilityList, DeferredProfile};
pub use claim::{AcquireClaim, ClaimAnswer, ClaimRecord, SettleClaim, SwapClaim, UnderClaim};
pub use clock::{Clock, ClockSet, ClockStep};
pub use event::{
    Event, EventAnswer, EventList, EventOrigin, EventProcessed, EventPublished, EventRoute, PublishEvent,
};
pub use facts::{Fact, FactList};
pub use job::{
    AnswerJob, Attempt, AttemptError, CancelJob, CreateJob, JobCreated, JobEnd, JobList, JobResult,
    JobStatus, Outside, OutsideError, ProgressEvent, ProtocolCancel, ReleaseResult, ResultAnswer,
    ResultNotReady, Retry, RunJob, Runner, StatusAnswer, UpdateJob,
};
pub use json::{JsonArray, JsonObject};
pub use node::{Node, NodeAnswer, NodeList};
pub use orphan::{Orphan, OrphanAnswer, OrphanCancelAnswer, OrphanList, RetryCancel, SettleOrphan};
pub use peer::{Candidate, Peer, PeerAnswer, PeerForgotten, PeerList, RegisterPeer};
pub use pipeline::{
    Pipeline, PipelineAnswer, PipelineList, PipelineStarted, PipelineStep, PipelineSummary,
    PipelinesReloaded, StartPipeline,
};
pub use problem::{FieldError, Problem, ProblemCode};
pub use pull::{
    After, AskInput, CompleteJob, DeferJob, FailJob, Handed, HeartbeatAnswer, HeartbeatJob, PullJob,
    PulledJob,
};
pub use run::{CancelRun, Run, RunAnswer, RunCause, RunList, RunRetried, RunVisit};
pub use token::{CreateToken, Role, Token, TokenCreated, TokenList, TokenRevoked};
pub use why::{Clamp, ReachedLimit, Reason, Why};

/// The header that names a write, so that it can be repeated safely.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The header on an answer that was given before and is repeated byte for byte.
pub const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";
/// The header on a piece of an artifact: the attempt that left it.
pub const ATTEMPT_ID: &str = "longhaul-attempt-id";
