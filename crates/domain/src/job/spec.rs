//! What a caller asks for when it creates a job. It never changes afterwards.

use serde::{Deserialize, Serialize};

use super::lane::is_reserved;
use crate::body::BodyRef;
use crate::limits::{
    MAX_BODIES, MAX_EXECUTION_BYTES, MAX_ID_BYTES, MAX_LABEL_BYTES, MAX_TAGS, MAX_TITLE_BYTES, check_indexed,
    check_optional, check_optional_bytes, check_text,
};
use crate::policy::LifeLimit;
use crate::run::StepLink;
use crate::{Json, Refusal, RetryPolicy, Timestamp};

/// A new job: what is asked for, from when on, and the bodies that come with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewJob {
    /// What is asked for.
    pub spec: JobSpec,
    /// Not before this time; at once if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Request, prompt, input, provenance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<BodyRef>,
}

/// The lasting part of what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// A free label.
    #[serde(default = "general", skip_serializing_if = "is_general")]
    pub kind: String,
    /// The executor that shall do it, if one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// The lane that it queues in; its executor's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// What whoever pulls it must have; for work without an executor and a lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Higher goes first within a lane.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub priority: i32,
    /// How often and how soon it is tried again.
    pub retry: RetryPolicy,
    /// Whether its creator said how often it is tried. Then a command that fails by itself is tried again too; without that only one that
    /// was lost is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry_requested: bool,
    /// How long one attempt may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// When its result is of no use any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// The end of its lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Who created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by_peer_id: Option<String>,
    /// Who owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_peer_id: Option<String>,
    /// The peer that shall do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_peer_id: Option<String>,
    /// The folder that it is done in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The durable workstream that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What joins it to other work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Who may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
    /// What made it: a calendar, an event, a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_kind: Option<String>,
    /// Which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// A free label of the creator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Who may see it: `circle` or `private`.
    #[serde(default = "circle", skip_serializing_if = "is_circle")]
    pub visibility: String,
    /// Labels to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How it shall be carried out, as its creator says and lists show it: a small object, not looked into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Json>,
    /// The step of a run that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Box<StepLink>>,
    /// Which limit of the host `expires_at` stands for; its creator's own word if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_by: Option<LifeLimit>,
    /// Whether its creator lets work outside that its service does not know any more be asked about until it expires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_restart_recovery: bool,
    /// The digest of the catalog entry that it was invoked through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog_digest: Option<String>,
    /// How long its caller waits for its end, after which it is asked to stop; no caller waits if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<CallerWait>,
}

/// How long a caller waits for the end of a job, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallerWait {
    /// As long as the caller asked for.
    Asked(u64),
    /// As long as the host lets any caller of the executor wait.
    Host(u64),
}

/// Priorities lie between the negative and the positive of this.
pub const MAX_PRIORITY: i32 = 1_000;

/// The visibility of a job that its circle sees.
pub const VISIBLE_TO_CIRCLE: &str = "circle";
/// The visibility of a job that only its own peers see, and who runs the daemon.
pub const VISIBLE_TO_OWN: &str = "private";

impl JobSpec {
    /// Whether only its own peers see it. A word of an older version that is neither of the two shows it to nobody else either.
    pub fn is_private(&self) -> bool {
        self.visibility != VISIBLE_TO_CIRCLE
    }

    /// A plain job for an executor, tried as its policy says.
    pub fn plain(executor: Option<&str>, retry: RetryPolicy) -> Self {
        Self {
            title: String::new(),
            kind: general(),
            executor: executor.map(str::to_owned),
            lane: None,
            label: None,
            priority: 0,
            retry,
            retry_requested: false,
            timeout_seconds: None,
            deadline_at: None,
            expires_at: None,
            created_by_peer_id: None,
            owner_peer_id: None,
            assigned_peer_id: None,
            path: None,
            session_id: None,
            correlation_id: None,
            circle: None,
            source_kind: None,
            source_id: None,
            scope: None,
            visibility: circle(),
            tags: Vec::new(),
            execution: None,
            step: None,
            expires_by: None,
            allow_restart_recovery: false,
            catalog_digest: None,
            wait: None,
        }
    }
}

impl NewJob {
    /// Refuses what is over a limit.
    pub fn check(&self) -> Result<(), Refusal> {
        let spec = &self.spec;
        check_text("title", &spec.title, MAX_TITLE_BYTES)?;
        check_text("kind", &spec.kind, MAX_LABEL_BYTES)?;
        check_text("visibility", &spec.visibility, MAX_LABEL_BYTES)?;
        for (what, text, limit) in [
            ("executor", &spec.executor, MAX_LABEL_BYTES),
            ("lane", &spec.lane, MAX_LABEL_BYTES),
            ("label", &spec.label, MAX_LABEL_BYTES),
            ("created_by_peer_id", &spec.created_by_peer_id, MAX_ID_BYTES),
            ("owner_peer_id", &spec.owner_peer_id, MAX_ID_BYTES),
            ("assigned_peer_id", &spec.assigned_peer_id, MAX_ID_BYTES),
            ("session_id", &spec.session_id, MAX_ID_BYTES),
            ("correlation_id", &spec.correlation_id, MAX_ID_BYTES),
            ("circle", &spec.circle, MAX_LABEL_BYTES),
            ("source_kind", &spec.source_kind, MAX_LABEL_BYTES),
            ("source_id", &spec.source_id, MAX_ID_BYTES),
            ("scope", &spec.scope, MAX_LABEL_BYTES),
            ("catalog_digest", &spec.catalog_digest, MAX_LABEL_BYTES),
        ] {
            check_optional(what, text.as_deref(), limit)?;
        }
        // It is part of the name of a lane, which an index holds.
        check_indexed("path", spec.path.as_deref(), MAX_TITLE_BYTES)?;
        check_optional_bytes("execution", spec.execution.as_ref().map(Json::as_str), MAX_EXECUTION_BYTES)?;
        if spec.tags.len() > MAX_TAGS {
            return Err(Refusal::TooLarge { what: "tags", limit: MAX_TAGS });
        }
        for tag in &spec.tags {
            check_text("tag", tag, MAX_LABEL_BYTES)?;
        }
        if self.bodies.len() > MAX_BODIES {
            return Err(Refusal::TooLarge { what: "bodies", limit: MAX_BODIES });
        }
        for body in &self.bodies {
            body.check()?;
        }
        if [&spec.executor, &spec.lane].into_iter().any(|name| name.as_deref().is_some_and(is_reserved)) {
            return Err(Refusal::InvalidPolicy { field: "lane" });
        }
        if !(-MAX_PRIORITY..=MAX_PRIORITY).contains(&spec.priority) {
            return Err(Refusal::InvalidPolicy { field: "priority" });
        }
        spec.retry.check()
    }
}

fn general() -> String {
    "general".to_owned()
}

fn is_general(kind: &str) -> bool {
    kind == "general"
}

fn circle() -> String {
    "circle".to_owned()
}

fn is_circle(visibility: &str) -> bool {
    visibility == "circle"
}
