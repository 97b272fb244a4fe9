//! Work that someone else gave to the service: from now on it is asked about here, as if `submit` had been answered so.

use domain::operation::Cancelability;
use serde_json::json;
use url::Url;

use super::HttpConnector;
use super::handle::Handle;
use super::submit::Work;
use crate::{Assignment, Deferral, ForeignWork};

impl HttpConnector {
    /// The handle of such work. Where its service is says the file, never whoever began the work: requests hold our credentials.
    pub(super) fn handle_of_foreign(
        &self,
        assignment: &Assignment,
        work: ForeignWork,
    ) -> Result<Deferral, String> {
        let connector = &self.connector;
        if connector.status.is_none() {
            return Err("its connector has no status request".to_owned());
        }
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
        let cancelability = match &connector.cancel {
            Some(_) => Cancelability::Cancelable,
            None => Cancelability::NotCancelable(connector.not_cancelable_because.clone()),
        };
        Ok(Deferral { cancelability, ..Deferral::new(handle.to_bytes()) })
    }
}

fn whole(base: &Url, location: &str) -> Result<String, String> {
    let url = base.join(location).map_err(|error| format!("{location:?} is no location: {error}"))?;
    if url.origin() != base.origin() {
        return Err(format!("the location {location:?} is not at its service"));
    }
    Ok(url.into())
}
