//! What the templates of a request may take from each name: a misspelt `secrets.tokn` is a mistake of the file, found when it is read.

use std::collections::BTreeMap;

use jsone::Template;

use super::file::{ConnectorFile, SecretSource};
use config_file::hint;

/// When a request is made: what is known of the work by then differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before the service has said anything: `submit` and `lookup`.
    Giving,
    /// Once the service has taken the work.
    Asking,
}

const JOB_WHEN_GIVING: [&str; 9] = [
    "id",
    "title",
    "kind",
    "tags",
    "priority",
    "session_id",
    "correlation_id",
    "attempt_id",
    "attempt_number",
];
const JOB_WHEN_ASKING: [&str; 2] = ["id", "attempt_id"];
const OPERATION_WHEN_GIVING: [&str; 2] = ["id", "callback_url"];
const OPERATION_WHEN_ASKING: [&str; 3] = ["id", "remote_id", "location"];

/// The members of every name that a request may read, except those of the input, which only jobs know.
pub(super) struct Members<'f> {
    secrets: &'f BTreeMap<String, serde_saphyr::Spanned<SecretSource>>,
    kept: Vec<&'f str>,
    stage: Stage,
}

impl<'f> Members<'f> {
    pub(super) fn of(file: &'f ConnectorFile, stage: Stage) -> Self {
        let kept = match stage {
            Stage::Giving => Vec::new(),
            Stage::Asking => file.submit.keep.keys().map(String::as_str).collect(),
        };
        Self { secrets: &file.secrets, kept, stage }
    }

    /// Refuses a template that takes something that there never is.
    pub(super) fn check(&self, template: &Template) -> Result<(), String> {
        for (name, member) in template.reads_members() {
            let Some(known) = self.known(name) else { continue };
            if known.contains(&member.as_str()) {
                continue;
            }
            let hint = hint(member, &known);
            let listed = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
            return Err(format!("there is no {name}.{member} here{hint}; {name} has: {listed}"));
        }
        Ok(())
    }

    fn known(&self, name: &str) -> Option<Vec<&str>> {
        match (name, self.stage) {
            ("secrets", _) => Some(self.secrets.keys().map(String::as_str).collect()),
            ("job", Stage::Giving) => Some(JOB_WHEN_GIVING.to_vec()),
            ("job", Stage::Asking) => Some(JOB_WHEN_ASKING.to_vec()),
            ("operation", Stage::Giving) => Some(OPERATION_WHEN_GIVING.to_vec()),
            ("operation", Stage::Asking) => {
                Some(OPERATION_WHEN_ASKING.iter().copied().chain(self.kept.iter().copied()).collect())
            }
            (_, Stage::Giving | Stage::Asking) => None,
        }
    }
}
