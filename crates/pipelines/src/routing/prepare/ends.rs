//! What a step is given that follows the end of a group, or a failure.

use domain::JobId;
use domain::run::{StepEnd, VisitIndex};
use engine::EngineError;
use serde_json::{Map, Value, json};

use super::{Given, Preparing, told};

impl Preparing<'_> {
    /// The ends of the branches of a group, together; that of its only branch as it is.
    pub(super) async fn joined(&self, group: VisitIndex) -> Result<Given, EngineError> {
        let given = self.given(group).await?;
        let mut ends: Vec<(String, Given)> = Vec::new();
        for at in self.run.good_ends_in(group) {
            let branch = self.run.branch_of(at).to_owned();
            ends.extend(self.outputs(at).await?.iter().map(|output| (branch.clone(), output.clone())));
        }
        if let ([(_, only)], 0..=1) = (&ends[..], self.run.branches_of(group)) {
            return Ok(only.clone());
        }
        let mut branches: Map<String, Value> = Map::new();
        for (branch, output) in ends {
            let payload = Value::Object(output.event.payload);
            match branches.get_mut(&branch) {
                None => {
                    branches.insert(branch, payload);
                }
                Some(Value::Array(several)) => several.push(payload),
                Some(one) => *one = Value::Array(vec![one.take(), payload]),
            }
        }
        let payload = Map::from_iter([("branches".to_owned(), Value::Object(branches))]);
        Ok(Given { event: told("longhaul.joined", payload, self.now), context: given.context })
    }

    /// What is to be said of a failure.
    pub(super) async fn failure(&self, at: VisitIndex) -> Result<Given, EngineError> {
        let visit = self.visit(at)?;
        let (job, _) = self.job_of(at).await?;
        let given = self.given(at).await?;
        let code = match visit.end() {
            Some(StepEnd::Failed { code }) => code.clone(),
            Some(StepEnd::Completed { .. } | StepEnd::Skipped | StepEnd::Cancelled) | None => String::new(),
        };
        let mut error: Value = Value::Null;
        if let Some(job) = &job
            && let Some(body) = job.result.error
            && let Some(bytes) = self.store.body(&job.id.clone().into(), body).await?
        {
            error = serde_json::from_slice(&bytes).unwrap_or_default();
        }
        let step = self.run.node(visit).map(|node| node.id.clone()).unwrap_or_default();
        let mut payload = given.event.payload;
        for (key, value) in [
            ("status", json!("error")),
            ("step", json!(step)),
            ("job_id", json!(visit.job_id().map(JobId::as_str))),
            ("code", json!(code)),
            ("error", error),
        ] {
            payload.insert(key.to_owned(), value);
        }
        Ok(Given { event: told("longhaul.step.failed", payload, self.now), context: given.context })
    }
}
