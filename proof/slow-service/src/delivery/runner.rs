//! Carrying deliveries out: one attempt at a time per delivery, pauses that grow, an end in any case.
//!
//! The ledger decides: an attempt begins only by the change from `accepted` or `failed-retryable` to `running`, so that a
//! recovery pass and the service itself never send at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::adapter::{Adapter, Parcel};
use super::attempt::{Targets, Verdict, attempt};
use super::envelope::{Stage, read_envelope, read_stages};
use crate::clock::{Clock, micros, rfc3339};
use crate::state::{Record, State, StateError};

/// Taken, not tried yet.
pub const ACCEPTED: &str = "accepted";
/// Being tried.
pub const RUNNING: &str = "running";
/// Over, well.
pub const SUCCEEDED: &str = "succeeded";
/// Over; some targets have it.
pub const PARTIAL: &str = "partial";
/// Tried, and to be tried again.
pub const FAILED_RETRYABLE: &str = "failed-retryable";
/// Over; no target has it.
pub const FAILED_PERMANENT: &str = "failed-permanent";
/// Over by its lifetime.
pub const EXPIRED: &str = "expired";

/// How often and when a delivery is tried again.
#[derive(Clone, Debug)]
pub struct Retry {
    /// Attempts in all, recovery included; the last one ends it.
    pub max_attempts: u32,
    /// Attempts that follow an acceptance by themselves; further ones are for recovery.
    pub attempts_in_a_row: u32,
    /// The pause after the first attempt; doubled after each.
    pub base: Duration,
    /// The longest pause.
    pub cap: Duration,
}

/// What attempts need.
#[derive(Debug)]
pub struct Runner {
    /// The ledger.
    pub state: State,
    /// By which deliveries expire.
    pub clock: Clock,
    /// By the name of the target.
    pub adapters: BTreeMap<String, Arc<dyn Adapter>>,
    /// How often and when.
    pub retry: Retry,
    /// For one target in one attempt.
    pub stage_timeout: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 12,
            attempts_in_a_row: 4,
            base: Duration::from_secs(1),
            cap: Duration::from_mins(1),
        }
    }
}

impl Runner {
    /// Takes up what a restart interrupted: it may be tried again.
    pub fn reopen(&self) -> Result<(), StateError> {
        let now = self.clock.now_micros();
        for record in self.state.in_status(RUNNING, usize::MAX)? {
            let line = history_line(
                &record,
                FAILED_RETRYABLE,
                Some(("adapter-transient", "interrupted by a restart")),
                now,
            );
            let body = with_history(record.body, line, Some("adapter-transient"));
            self.state.change(&record.id, RUNNING, FAILED_RETRYABLE, &body, now)?;
        }
        Ok(())
    }

    /// The record as it is now, expired if its life is over and nobody is at it.
    pub fn current(&self, id: &str) -> Result<Option<Record>, StateError> {
        let Some(record) = self.state.by_id(id)? else { return Ok(None) };
        let now = self.clock.now_micros();
        let waiting = record.status == ACCEPTED || record.status == FAILED_RETRYABLE;
        if waiting && expires_at(&record) <= now {
            self.state.change(id, &record.status, EXPIRED, &record.body, now)?;
            return self.state.by_id(id);
        }
        Ok(Some(record))
    }

    /// Attempts, with pauses, until it is over or enough for one run.
    pub async fn pursue(self: Arc<Self>, id: String) {
        for turn in 0..self.retry.attempts_in_a_row {
            if turn > 0 {
                let Ok(Some(record)) = self.current(&id) else { return };
                self.clock.sleep_until(retry_at(&record)).await;
            }
            match self.attempt(&id).await {
                Ok(Some(record)) if record.status == FAILED_RETRYABLE => {}
                // Over, in other hands, or not to be written: recovery has it then.
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// One attempt; nothing when it is over or in other hands.
    pub async fn attempt(&self, id: &str) -> Result<Option<Record>, StateError> {
        let Some(record) = self.current(id)? else { return Ok(None) };
        if record.status != ACCEPTED && record.status != FAILED_RETRYABLE {
            return Ok(None);
        }
        let began = self.clock.now_micros();
        let mut body = record.body.clone();
        body["attempts"] = json!(attempts(&record) + 1);
        body["attempt_began_at"] = json!(rfc3339(began));
        if !self.state.change(id, &record.status, RUNNING, &body, began)? {
            return Ok(None);
        }
        let (stages, parcel) = read_back(&record);
        let mut targets = targets_of(&body);
        let verdict = attempt(&stages, &parcel, &self.adapters, self.stage_timeout, &mut targets).await;
        body["delivered"] = json!(targets.delivered);
        body["refused"] = json!(targets.refused);
        let running = Record { status: RUNNING.to_owned(), body, ..record };
        let (end, body) = self.concluded(running, &verdict, &targets);
        self.state.change(id, RUNNING, end, &body, self.clock.now_micros())?;
        self.state.by_id(id)
    }

    fn concluded(&self, record: Record, verdict: &Verdict, targets: &Targets) -> (&'static str, Value) {
        let now = self.clock.now_micros();
        let without_success = if targets.delivered.is_empty() { FAILED_PERMANENT } else { PARTIAL };
        let (end, fault) = match verdict {
            Verdict::Succeeded => (SUCCEEDED, None),
            Verdict::Never(class, message) => (without_success, Some((*class, message.as_str()))),
            Verdict::Again(class, message) if expires_at(&record) <= now => {
                (EXPIRED, Some((*class, message.as_str())))
            }
            Verdict::Again(_, message) if attempts(&record) >= self.retry.max_attempts => {
                (without_success, Some(("runtime-limit", message.as_str())))
            }
            Verdict::Again(class, message) => (FAILED_RETRYABLE, Some((*class, message.as_str()))),
        };
        let line = history_line(&record, end, fault, now);
        let pause = self.pause_after(attempts(&record));
        let mut body = with_history(record.body, line, fault.map(|(class, _)| class));
        body["retry_at"] = json!(now.saturating_add(pause));
        (end, body)
    }

    fn pause_after(&self, attempts: u32) -> i64 {
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
        micros(self.retry.base.saturating_mul(doubled).min(self.retry.cap))
    }
}

/// How often it was tried.
pub fn attempts(record: &Record) -> u32 {
    record.body["attempts"].as_u64().and_then(|attempts| u32::try_from(attempts).ok()).unwrap_or(0)
}

/// When its life is over, in microseconds since 1970.
pub fn expires_at(record: &Record) -> i64 {
    record.body["expires_at"].as_i64().unwrap_or(i64::MAX)
}

/// When it may be tried again by itself.
pub fn retry_at(record: &Record) -> i64 {
    record.body["retry_at"].as_i64().unwrap_or(0)
}

fn targets_of(body: &Value) -> Targets {
    let names = |field: &str| {
        let list = body[field].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    Targets { delivered: names("delivered"), refused: names("refused") }
}

/// What was accepted was understood then, and is understood again.
fn read_back(record: &Record) -> (Vec<Stage>, Parcel) {
    let envelope = read_envelope(record.body["envelope"].to_string().as_bytes()).ok();
    let parcel = Parcel {
        delivery_id: record.id.clone(),
        target: String::new(),
        digest: envelope.as_ref().map(|envelope| envelope.digest.clone()).unwrap_or_default(),
        artifact_ref: envelope.as_ref().and_then(|envelope| envelope.artifact_ref.clone()),
        bytes: envelope.and_then(|envelope| envelope.bytes),
    };
    (read_stages(&record.body["stages"]).unwrap_or_default(), parcel)
}

fn history_line(record: &Record, end: &str, fault: Option<(&str, &str)>, now: i64) -> Value {
    let mut line = json!({
        "attempt": attempts(record),
        "began_at": record.body["attempt_began_at"],
        "ended_at": rfc3339(now),
        "status": end,
    });
    if let Some((class, message)) = fault {
        line["failure/class"] = json!(class);
        line["message"] = json!(message);
    }
    line
}

fn with_history(mut body: Value, line: Value, class: Option<&str>) -> Value {
    if let Some(history) = body["retry/history"].as_array_mut() {
        history.push(line);
    }
    body["failure/class"] = json!(class);
    body
}
