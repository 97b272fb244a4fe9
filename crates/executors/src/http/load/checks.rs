//! What a file must have to be of use: a name, a way to ask about what it leaves outside, and by what the work is found there.

use domain::limits::MAX_LABEL_BYTES;
use serde_saphyr::{Location, Spanned};

use super::{Loader, MAX_RESPONSE_BYTES};
use crate::http::call::Call;
use crate::http::file::{ConnectorFile, LimitsFile};
use config_file::Mistake;
use engine::ModeSupport;

/// A request about work that a service has, by the name that the file gives it.
pub(super) struct Later<'c> {
    pub(super) name: &'static str,
    pub(super) call: &'c Call,
    pub(super) at: &'c Location,
}

impl Loader<'_> {
    pub(super) fn check_name(&self, name: &Spanned<String>) -> Result<(), Mistake> {
        let fits = (1..=MAX_LABEL_BYTES).contains(&name.value.len())
            && name.value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if fits {
            return Ok(());
        }
        let told = format!("a name has 1 to {MAX_LABEL_BYTES} letters, digits, dashes, dots or underscores");
        Err(self.at(&name.defined, told))
    }

    /// Whether it can do what it says that it does.
    pub(super) fn check_mode(&self, file: &ConnectorFile) -> Result<(), Mistake> {
        let at = &file.name.defined;
        match (file.execution_mode_support, &file.status) {
            (ModeSupport::SyncOnly, Some(status)) => Err(self.at(
                &status.defined,
                "a connector with a status request leaves work outside: set execution_mode_support to either or async-only",
            )),
            (ModeSupport::AsyncOnly | ModeSupport::Either, None) => {
                Err(self.at(at, "a connector that leaves work outside needs a status request"))
            }
            (ModeSupport::AsyncOnly | ModeSupport::Either, Some(status)) => {
                let reads = file.read.status.is_some() || status.value.read.status.is_some();
                if reads && !file.states.is_empty() {
                    return Ok(());
                }
                let told = "status needs read.status (where the state is) and states (what it means)";
                Err(self.at(&status.defined, told))
            }
            (ModeSupport::SyncOnly, None) => Ok(()),
        }
    }

    pub(super) fn check_limits(&self, limits: &LimitsFile) -> Result<(), Mistake> {
        for (what, bytes) in [
            ("response_bytes", limits.response_bytes),
            ("result_bytes", limits.result_bytes),
            ("header_bytes", limits.header_bytes),
        ] {
            if bytes.is_some_and(|bytes| !(1..=MAX_RESPONSE_BYTES).contains(&bytes)) {
                let told = format!("limits.{what} is 1 to {MAX_RESPONSE_BYTES}");
                return Err(Mistake::somewhere(self.file, told));
            }
        }
        Ok(())
    }

    /// Whether later requests know which work they ask about: one that finds nothing in the answer to `submit` asks somewhere else.
    pub(super) fn check_finds_work(
        &self,
        file: &ConnectorFile,
        submit: &Call,
        later: &[Later<'_>],
    ) -> Result<(), Mistake> {
        for Later { name, call, at } in later {
            let wrong = |told: &str| Err(self.at(at, format!("{name}: {told}")));
            if submit.read.id.is_none() && call.takes_member("operation", "remote_id") {
                return wrong(
                    "operation.remote_id is used, and nothing says where the service's id is: set read.id, or submit.read.id",
                );
            }
            let told_our_id = submit.takes("operation", "id") || file.submit.idempotency_header.is_some();
            if submit.read.id.is_none() && call.takes_member("operation", "id") && !told_our_id {
                return wrong(
                    "operation.id is longhaul's own id, and submit does not send it: set read.id and use operation.remote_id",
                );
            }
        }
        Ok(())
    }
}
