//! Whether there is room for one more call of an executor. Calls that were let in and are not written yet count as if they were.

use std::collections::BTreeMap;
use std::sync::Mutex;

use domain::policy::{HostPolicy, OpenLimit};
use store::{Store, StoreError};

use crate::locked::Locked;

/// Lets calls in as long as their executor, and the host, have room.
#[derive(Debug, Default)]
pub struct AdmissionControl {
    pending: Mutex<BTreeMap<String, u64>>,
}

/// Room for one more, until it is written.
#[derive(Debug)]
pub struct AdmissionPermit<'a> {
    control: &'a AdmissionControl,
    executor: &'a str,
}

/// Why a call is not let in.
#[derive(Debug)]
pub enum AdmissionError {
    /// Too much is open.
    Full(OpenLimit),
    /// What is open cannot be counted.
    Store(StoreError),
}

impl AdmissionControl {
    /// Lets a call of an executor in, or turns it away because too much is open.
    pub async fn admit<'a>(
        &'a self,
        store: &dyn Store,
        policy: &HostPolicy,
        circle: Option<&str>,
        executor: &'a str,
    ) -> Result<AdmissionPermit<'a>, AdmissionError> {
        *self.pending.locked().entry(executor.to_owned()).or_default() += 1;
        let permit = AdmissionPermit { control: self, executor };
        let open = store.open_jobs(executor).await.map_err(AdmissionError::Store)?;
        let (own, all) = {
            let pending = self.pending.locked();
            (pending.get(executor).copied().unwrap_or_default(), pending.values().sum::<u64>())
        };
        policy
            .check_open(circle, executor, open.of_executor + own, open.total + all)
            .map_err(AdmissionError::Full)?;
        Ok(permit)
    }
}

impl Drop for AdmissionPermit<'_> {
    fn drop(&mut self) {
        let mut pending = self.control.pending.locked();
        if let Some(count) = pending.get_mut(self.executor) {
            *count -= 1;
            if *count == 0 {
                pending.remove(self.executor);
            }
        }
    }
}
