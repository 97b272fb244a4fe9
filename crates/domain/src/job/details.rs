//! What a report may say besides the state: reason, phase, progress, a note, parts of the result.

use serde::{Deserialize, Serialize};

use super::attempt::Release;
use super::state::JobStateName;
use crate::body::{BodyName, BodyRef};
use crate::limit::NamedLimit;
use crate::limits::{
    MAX_LABEL_BYTES, MAX_NOTE_BYTES, MAX_PROGRESS_BYTES, MAX_SUMMARY_BYTES, check_optional,
    check_optional_bytes,
};
use crate::{Json, Refusal, Timestamp};

/// The bounded rest of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Details {
    /// Why, short and machine-readable. Overwrites what was there, also when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A free label. Overwrites what was there, also when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Replaces the progress object, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Json>,
    /// One line for the history, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The question that it waits on, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<BodyRef>,
    /// Parts of the result; what is left out stays as it was.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub result: ResultRefs,
    /// Replaces where the job came from, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<BodyRef>,
    /// Whether another attempt would have followed if one were left. Only the rules say so.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub attempts_used_up: bool,
    /// The limit of ours that ended the attempt, if one did. Nobody outside the daemon says so.
    #[serde(rename = "time_limit", default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<AttemptLimit>>,
    /// What became of the executor of the attempt, if that was seen. Nobody outside the daemon says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
}

/// A limit of ours that ended an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptLimit {
    /// `timeout_seconds` of the job.
    Job,
    /// The time limit that the executor has for all its jobs.
    Executor {
        /// How long it was.
        seconds: u64,
        /// The command of the plugin that it is for; none: it is for the whole executor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
    /// Any other, as it was when it was reached.
    Other(Box<NamedLimit>),
}

impl From<NamedLimit> for AttemptLimit {
    fn from(limit: NamedLimit) -> Self {
        Self::Other(Box::new(limit))
    }
}

impl AttemptLimit {
    fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Job => Ok(()),
            Self::Executor { command, .. } => {
                check_optional("time_limit.command", command.as_deref(), MAX_LABEL_BYTES)
            }
            Self::Other(limit) => limit.check(),
        }
    }
}

/// A result: a short summary inline, everything else by reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultRefs {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<BodyRef>,
    /// The error object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<BodyRef>,
    /// The list of artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<BodyRef>,
    /// How many events came with it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub emitted: u32,
    /// Whether its attempt left files for the steps that follow it in its run.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub left_files: bool,
}

/// One line of a job's history for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When.
    pub at: Timestamp,
    /// What.
    pub note: String,
    /// The state that the report put the job in.
    pub state: JobStateName,
    /// The phase sent with it, else the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

impl Details {
    /// Only a reason.
    pub fn because(reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..Self::default() }
    }

    /// Whether it says anything at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it only takes away reason or phase, by empty texts.
    pub(super) fn only_clears(&self) -> bool {
        let is_empty = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
        let Self { reason, phase, .. } = self;
        is_empty(reason) && is_empty(phase) && Self { reason: None, phase: None, ..self.clone() }.is_empty()
    }

    /// Refuses what is over a limit.
    pub fn check(&self) -> Result<(), Refusal> {
        check_optional("state_reason", self.reason.as_deref(), MAX_LABEL_BYTES)?;
        check_optional("phase", self.phase.as_deref(), MAX_LABEL_BYTES)?;
        check_optional("progress_note", self.note.as_deref(), MAX_NOTE_BYTES)?;
        check_optional_bytes("progress", self.progress.as_ref().map(Json::as_str), MAX_PROGRESS_BYTES)?;
        check_optional("result_summary", self.result.summary.as_deref(), MAX_SUMMARY_BYTES)?;
        self.limit.as_deref().map_or(Ok(()), AttemptLimit::check)?;
        self.question.map_or(Ok(()), |body| body.check_named(BodyName::Question))?;
        self.provenance.map_or(Ok(()), |body| body.check_named(BodyName::Provenance))?;
        self.result.check()
    }

    /// The bodies that it refers to.
    pub fn bodies(&self) -> impl Iterator<Item = &BodyRef> {
        self.question.iter().chain(self.result.bodies()).chain(&self.provenance)
    }
}

impl ResultRefs {
    /// Whether there is no result.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses bodies over their limit or in each other's place.
    pub fn check(&self) -> Result<(), Refusal> {
        let check = |body: Option<BodyRef>, name| body.map_or(Ok(()), |body| body.check_named(name));
        check(self.data, BodyName::Result)?;
        check(self.error, BodyName::Error)?;
        check(self.artifacts, BodyName::Artifacts)
    }

    /// The bodies that it refers to.
    pub fn bodies(&self) -> impl Iterator<Item = &BodyRef> {
        [&self.data, &self.error, &self.artifacts].into_iter().flatten()
    }

    /// Whether the other one says something else where this one says something already.
    pub(super) fn is_contradicted_by(&self, other: &Self) -> bool {
        fn differ<T: PartialEq>(kept: Option<&T>, said: Option<&T>) -> bool {
            matches!((kept, said), (Some(kept), Some(said)) if kept != said)
        }
        differ(self.summary.as_ref(), other.summary.as_ref())
            || differ(self.data.as_ref(), other.data.as_ref())
            || differ(self.error.as_ref(), other.error.as_ref())
            || differ(self.artifacts.as_ref(), other.artifacts.as_ref())
    }

    /// Takes over what the newer one has and keeps the rest.
    pub(super) fn merge(&mut self, newer: &Self) {
        if newer.summary.is_some() {
            self.summary.clone_from(&newer.summary);
        }
        self.data = newer.data.or(self.data);
        self.error = newer.error.or(self.error);
        self.artifacts = newer.artifacts.or(self.artifacts);
        self.emitted = self.emitted.max(newer.emitted);
        self.left_files |= newer.left_files;
    }
}
