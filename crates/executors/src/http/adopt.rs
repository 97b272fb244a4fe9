//! Work that someone else gave to the service: from now on it is asked about here, as if `submit` had been answered so.

use domain::operation::Cancelability;
use serde_json::{Value, json};
use url::Url;

use super::HttpConnector;
use super::handle::Handle;
use super::submit::Work;
use engine::{Assignment, Deferral, ForeignWork};

impl HttpConnector {
    /// The handle of such work. Where its service is says the file, never whoever began the work: requests hold our credentials.
    pub(super) fn handle_of_foreign(
        &self,
        assignment: &Assignment,
        work: ForeignWork,
    ) -> Result<Deferral, String> {
        let connector = &self.connector;
        let Some(status) = connector.status.as_ref().filter(|_| connector.adopts) else {
            return Err("its connector does not say `adopts: true`, or has no status request".to_owned());
        };
        check_id(&work.id)?;
        let mine = Work::of(assignment);
        let operation = json!({ "id": assignment.attempt_id.as_str() });
        let context = super::context(Some(&mine.input), mine.job.clone(), operation, self.secrets.named());
        let place = connector.submit.place(&context, None, self.clock.now());
        let base = self.place(place.map_err(|told| format!("where its service is cannot be told: {told}"))?);
        let location = work.location.map(|location| whole(&base, &location)).transpose()?;
        let handle = Handle {
            key: assignment.attempt_id.as_str().to_owned(),
            base,
            remote_id: work.id,
            location,
            kept: serde_json::Map::new(),
            input: connector.keeps_input.then_some(mine.input),
        };
        // What cannot be asked now never can.
        for call in [Some(status), connector.cancel.as_ref(), connector.result.as_ref()].into_iter().flatten()
        {
            let job =
                json!({ "id": assignment.job.id.as_str(), "attempt_id": assignment.attempt_id.as_str() });
            let context =
                super::context(handle.input.as_ref(), job, handle.operation(), self.secrets.named());
            let asked = call
                .place(&context, Some(&handle.base), self.clock.now())
                .map_err(|told| self.masked(told))?;
            if asked.origin() != handle.base.origin() && !connector.origins.contains(&asked.origin()) {
                return Err("it would be asked elsewhere than at its service".to_owned());
            }
        }
        let cancelability = match &connector.cancel {
            Some(_) => Cancelability::Cancelable,
            None => Cancelability::NotCancelable(connector.not_cancelable_because.clone()),
        };
        let external_job_id = handle.external_job_id();
        Ok(Deferral { external_job_id, cancelability, ..Deferral::new(handle.to_bytes()) })
    }
}

/// An id is one part of a path, and nothing that leads elsewhere.
fn check_id(id: &Value) -> Result<(), String> {
    let leads = |text: &str| text.contains(['/', '\\', '?', '#']) || text.contains("..") || text.is_empty();
    match id {
        Value::String(text) if leads(text) => Err(format!("{text:?} is no plain id")),
        Value::String(_) | Value::Number(_) | Value::Null => Ok(()),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err("an id is a text or a number".to_owned()),
    }
}

fn whole(base: &Url, location: &str) -> Result<String, String> {
    let url = base.join(location).map_err(|error| format!("{location:?} is no location: {error}"))?;
    if url.origin() != base.origin() {
        return Err(format!("the location {location:?} is not at its service"));
    }
    Ok(url.into())
}
