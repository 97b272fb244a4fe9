//! A limit of ours that ended something: its name, its value, whose it is, and the key that changes it.
//!
//! Pure: read from the records, and from the policy for whose word a limit is. It says nothing of limits of a service.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::job::{ACTION_TIMEOUT, AttemptLimit, CANCEL_LIMIT_SECONDS, CallerWait, Ended, Job, Phase};
use crate::limits::{MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_text};
use crate::operation::{Ending, ExpiryCause, How, Operation};
use crate::policy::{Hint, HostPolicy, KindPolicy, LifeLimit};
use crate::run::{MAX_VISITS, Run, TOO_MANY_STEPS};
use crate::words::words;
use crate::{Refusal, Timestamp};

/// A limit that was reached, or that bounds what goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedLimit {
    /// Its name, as its key is called.
    pub name: Cow<'static, str>,
    /// How much it allows.
    pub value: LimitValue,
    /// Whose word it is.
    pub owner: LimitOwner,
    /// What to change so that it is another.
    pub key: String,
}

/// How much a limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitValue {
    /// A time.
    At(Timestamp),
    /// A length of time.
    Seconds(u64),
    /// A shorter one.
    Millis(u64),
    /// A number of attempts.
    Attempts(u32),
    /// A number of status polls.
    Polls(u32),
    /// A size.
    Bytes(u64),
    /// A number of what its name says.
    Count(u64),
}

words! {
    /// Whose word a limit is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum LimitOwner {
        /// Whoever created the job.
        Job = "job",
        /// The policy of the connector, or of its kind in the configuration.
        ConnectorPolicy = "connector policy",
        /// The file of the connector, beside its policy.
        Connector = "connector",
        /// What the executor has for all its jobs.
        Executor = "executor",
        /// The file of a pipeline.
        Pipeline = "pipeline",
        /// What the host has for everybody.
        HostDefault = "host default",
    }
}

impl NamedLimit {
    /// One that is the same for all work.
    pub fn fixed(name: &'static str, value: LimitValue) -> Self {
        Self { name: name.into(), value, owner: LimitOwner::HostDefault, key: FIXED.to_owned() }
    }

    /// One that the operator has set for everybody, or left as it is, under this key of longhaul.yaml.
    pub fn of_host(key: &'static str, value: LimitValue) -> Self {
        let in_file = format!("{key} in longhaul.yaml");
        Self { name: key.into(), value, owner: LimitOwner::HostDefault, key: in_file }
    }

    /// One that the creator of the job has set.
    fn of_job(name: &'static str, value: LimitValue, key: impl Into<String>) -> Self {
        Self { name: name.into(), value, owner: LimitOwner::Job, key: key.into() }
    }

    /// Refuses texts that are too long for a fact.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_text("limit.name", &self.name, MAX_LABEL_BYTES)?;
        check_text("limit.key", &self.key, MAX_NOTE_BYTES)
    }
}

/// What was asked for of the host, and what it granted instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamp {
    /// The limit that made the difference.
    pub limit: &'static str,
    /// What was asked for, in seconds.
    pub asked_seconds: i64,
    /// What was granted, in seconds.
    pub granted_seconds: i64,
}

/// The limits of ours that ended a job, most important first; none if it ended by itself or is not over. The operation is its newest.
pub fn ended_by(job: &Job, operation: Option<&Operation>, policy: &HostPolicy) -> Vec<NamedLimit> {
    let mut limits = Vec::new();
    let reason = job.state_reason.as_deref();
    match job.state.phase() {
        Phase::Ended(Ended::Expired) if reason == Some("deadline_elapsed") => {
            limits.extend(end_of(job, policy));
        }
        Phase::Ended(Ended::Expired) => {
            limits.extend(operation.and_then(|operation| gave_up(job, operation, policy)));
        }
        Phase::Ended(Ended::Failed) => limits.extend(of_attempt(job)),
        Phase::Ended(Ended::Cancelled) => {
            limits.extend(stopped_after_wait(job, policy));
            limits.extend(unconfirmed(job));
        }
        Phase::Ended(Ended::Unavailable { .. }) => {}
        Phase::Queued { .. } | Phase::Held(_) | Phase::Waiting(_) | Phase::Ended(Ended::Completed) => {
            return limits;
        }
    }
    if job.attempts_used_up {
        limits.push(attempts(job));
    }
    limits
}

/// The limit of ours that ended a run as a whole, if one did.
pub fn ended_run(run: &Run) -> Option<NamedLimit> {
    let visits = LimitValue::Count(MAX_VISITS as u64);
    (run.condemned.as_deref() == Some(TOO_MANY_STEPS)).then(|| NamedLimit::fixed("steps of a run", visits))
}

/// What bounds the life of work outside.
pub fn life_of(job: &Job, operation: &Operation, policy: &HostPolicy) -> Option<NamedLimit> {
    let (kind, circle) = (&operation.link.kind, operation.link.circle.as_deref());
    Some(match operation.bounded_by? {
        LifeLimit::Job => return end_of(job, policy),
        LifeLimit::JobTtl => NamedLimit {
            name: "job_ttl_seconds".into(),
            value: LimitValue::Seconds(operation.policy.max_ttl_seconds),
            owner: LimitOwner::HostDefault,
            key: format!(
                "policy.max_ttl_seconds in the connector file of {kind}, policy.job_ttl_seconds in longhaul.yaml for all, \
                 or deadline_at of the job"
            ),
        },
        LifeLimit::MaxTtl => of_kind(
            "max_ttl_seconds",
            LimitValue::Seconds(operation.policy.max_ttl_seconds),
            kind,
            circle,
            policy,
        ),
        LifeLimit::FailAfter => NamedLimit {
            name: "fail_after".into(),
            value: LimitValue::At(operation.expires_at),
            owner: LimitOwner::Connector,
            key: format!("what the service says under read.fail_after in the connector file of {kind}"),
        },
        LifeLimit::ActionTtl => preferred(LimitValue::At(operation.expires_at), kind),
        LifeLimit::Wait => caller_wait(job, policy),
    })
}

/// Why the host gave work outside up, if it did.
fn gave_up(job: &Job, operation: &Operation, policy: &HostPolicy) -> Option<NamedLimit> {
    match &operation.ended.as_ref()?.how {
        How::Expired(ExpiryCause::LifetimeOver) => life_of(job, operation, policy),
        How::Expired(ExpiryCause::MaxAttemptsExhausted) => {
            let (kind, circle) = (&operation.link.kind, operation.link.circle.as_deref());
            let value = LimitValue::Polls(operation.policy.max_attempts);
            Some(of_kind("max_attempts", value, kind, circle, policy))
        }
        How::Expired(ExpiryCause::Abandoned(_) | ExpiryCause::SubmitOutcomeUnknown) => end_of(job, policy),
        How::Expired(ExpiryCause::VolatileLost)
        | How::Cancelled
        | How::Resolved(
            Ending::Completed { .. }
            | Ending::Failed { .. }
            | Ending::TimedOut
            | Ending::Expired
            | Ending::Unknown
            | Ending::NobodyToAsk,
        ) => None,
    }
}

/// The end of a job: its own, or what was granted to it when it was invoked.
fn end_of(job: &Job, policy: &HostPolicy) -> Option<NamedLimit> {
    let spec = &job.spec;
    let end = job.expires_at()?;
    if spec.expires_at != Some(end) || spec.deadline_at == Some(end) {
        return Some(NamedLimit::of_job("deadline_at", LimitValue::At(end), "deadline_at of the job"));
    }
    let granted = end.micros().saturating_sub(job.created_at.micros()) / 1_000_000;
    let granted = LimitValue::Seconds(u64::try_from(granted).unwrap_or_default());
    let (kind, circle) = (spec.executor.as_deref().unwrap_or_default(), spec.circle.as_deref());
    Some(match spec.expires_by {
        Some(LifeLimit::MaxTtl) => of_kind("max_ttl_seconds", granted, kind, circle, policy),
        Some(LifeLimit::ActionTtl) => preferred(granted, kind),
        Some(LifeLimit::Wait) => caller_wait(job, policy),
        Some(LifeLimit::Job | LifeLimit::JobTtl | LifeLimit::FailAfter) | None => {
            NamedLimit::of_job("expires_at", LimitValue::At(end), "expires_at of the job")
        }
    })
}

fn of_kind(
    name: &'static str,
    value: LimitValue,
    kind: &str,
    circle: Option<&str>,
    policy: &HostPolicy,
) -> NamedLimit {
    let owner = if policy.is_of_kind(circle, kind, name) {
        LimitOwner::ConnectorPolicy
    } else {
        LimitOwner::HostDefault
    };
    let key = format!(
        "policy.{name} in the connector file of {kind}, or policy.defaults.{name} in longhaul.yaml for all"
    );
    NamedLimit { name: name.into(), value, owner, key }
}

fn preferred(value: LimitValue, kind: &str) -> NamedLimit {
    let key = format!("deferred_profile.preferred_max_ttl_seconds in the connector file of {kind}");
    NamedLimit { name: "preferred_max_ttl_seconds".into(), value, owner: LimitOwner::Connector, key }
}

/// The key of a limit that nothing changes.
pub const FIXED: &str = "none: it is the same for all work";

/// How long the caller of a job waited for it: as it asked for, or as long as the host lets any caller wait.
pub fn caller_wait(job: &Job, policy: &HostPolicy) -> NamedLimit {
    let kind = job.spec.executor.as_deref().unwrap_or_default();
    let of_call = |value| {
        let key = "timing.timeout_ms of the call, up to policy.invoke_timeout_ms in the connector file of";
        NamedLimit::of_job("timeout_ms", value, format!("{key} {kind}"))
    };
    match job.spec.wait {
        Some(CallerWait::Host(ms)) => {
            let circle = job.spec.circle.as_deref();
            of_kind("invoke_timeout_ms", LimitValue::Millis(ms), kind, circle, policy)
        }
        Some(CallerWait::Asked(ms)) => of_call(LimitValue::Millis(ms)),
        // An older version did not write it down.
        None => of_call(LimitValue::At(job.expires_at().unwrap_or(job.updated_at))),
    }
}

/// The wait of the caller, if the daemon asked the job to stop because it was over.
fn stopped_after_wait(job: &Job, policy: &HostPolicy) -> Option<NamedLimit> {
    let cancel = job.cancel.as_ref().filter(|cancel| !cancel.is_late())?;
    let stopped = job.spec.wait.is_some() && cancel.reason == ACTION_TIMEOUT;
    stopped.then(|| caller_wait(job, policy))
}

/// The limit of the job or of its executor that ended the attempt.
fn of_attempt(job: &Job) -> Option<NamedLimit> {
    let executor = job.spec.executor.as_deref().unwrap_or_default();
    Some(match job.limit.as_ref()? {
        AttemptLimit::Job => {
            let value = LimitValue::Seconds(job.spec.timeout_seconds?);
            NamedLimit::of_job("timeout_seconds", value, "timeout_seconds of the job")
        }
        AttemptLimit::Executor { seconds, command: None } => NamedLimit {
            name: "timeout_seconds".into(),
            value: LimitValue::Seconds(*seconds),
            owner: LimitOwner::Executor,
            key: format!("executors[].timeout_seconds of {executor}"),
        },
        AttemptLimit::Executor { seconds, command: Some(command) } => NamedLimit {
            name: format!("timeouts.{command}").into(),
            value: LimitValue::Seconds(*seconds),
            owner: LimitOwner::Executor,
            key: format!("plugins.{executor}.timeouts.{command}"),
        },
        AttemptLimit::Other(limit) => NamedLimit::clone(limit),
    })
}

fn attempts(job: &Job) -> NamedLimit {
    let spec = &job.spec;
    let (owner, key) = if spec.retry_requested || spec.executor.is_none() {
        (LimitOwner::Job, "retry.max_attempts of the job".to_owned())
    } else {
        let executor = spec.executor.as_deref().unwrap_or_default();
        let key = format!("retry.max_attempts of the job, or of {executor} in its file or in longhaul.yaml");
        (LimitOwner::Executor, key)
    };
    NamedLimit {
        name: "retry.max_attempts".into(),
        value: LimitValue::Attempts(job.retry_after_loss().max_attempts),
        owner,
        key,
    }
}

/// A cancel that nobody confirmed in time.
fn unconfirmed(job: &Job) -> Option<NamedLimit> {
    let cancel = job.cancel.as_ref()?;
    let waited = job.state_reason.as_deref() == Some("cancel_unconfirmed")
        && job.completed_at.is_some_and(|at| cancel.limit_at.is_some_and(|limit| limit <= at));
    waited.then(|| NamedLimit::fixed("cancel_limit_seconds", LimitValue::Seconds(CANCEL_LIMIT_SECONDS)))
}

impl Operation {
    /// What was asked for on its behalf, where the host granted something else.
    pub fn clamps(&self) -> Vec<Clamp> {
        let asked = self.asked_retry_after_seconds;
        let interval = asked.and_then(|asked| clamped_interval(asked, self.interval_seconds));
        let life = self.expires_at.micros().saturating_sub(self.dispatched_at.micros()) / 1_000_000;
        let ttl = self.asked_ttl_seconds.map(|asked| Clamp {
            limit: match self.bounded_by {
                Some(LifeLimit::Job) => "deadline_at",
                Some(LifeLimit::JobTtl) => "job_ttl_seconds",
                Some(LifeLimit::MaxTtl | LifeLimit::FailAfter | LifeLimit::ActionTtl | LifeLimit::Wait)
                | None => "max_ttl_seconds",
            },
            asked_seconds: i64::try_from(asked).unwrap_or(i64::MAX),
            granted_seconds: life,
        });
        interval.into_iter().chain(ttl).collect()
    }
}

impl KindPolicy {
    /// What of such hints the host does not grant.
    pub fn clamps(&self, retry_after: Option<i64>, ttl: Option<i64>) -> Vec<Clamp> {
        let granted = |asked| self.retry_after(Hint::Seconds(asked)).seconds;
        let interval = retry_after.and_then(|asked| clamped_interval(asked, granted(asked)));
        let most = i64::try_from(self.max_ttl_seconds).unwrap_or(i64::MAX);
        let ttl = ttl.filter(|asked| *asked > most).map(|asked| Clamp {
            limit: "max_ttl_seconds",
            asked_seconds: asked,
            granted_seconds: most,
        });
        interval.into_iter().chain(ttl).collect()
    }
}

/// Seconds between polls, if others were asked for than were granted.
fn clamped_interval(asked_seconds: i64, granted: u32) -> Option<Clamp> {
    let granted_seconds = i64::from(granted);
    let is_longer = asked_seconds > granted_seconds;
    let limit = if is_longer { "max_retry_after_seconds" } else { "min_retry_after_seconds" };
    (asked_seconds != granted_seconds).then_some(Clamp { limit, asked_seconds, granted_seconds })
}
