//! The ledgers outside the store: what was acknowledged to clients, and who produced which result.

use domain::{AttemptId, BodyName, BodyRef, JobId, OperationId};
use engine::Emitted;
use std::sync::Arc;
use store::{IdempotencyKey, NewBody, Tables, body_ref};

use super::{Checker, Violation, must};

/// Who produced a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// For which job.
    pub job: JobId,
    /// In which attempt; none for unmanaged work.
    pub attempt: Option<AttemptId>,
    /// In which operation, if outside.
    pub operation: Option<OperationId>,
}

/// A result that someone made, and the bytes of it.
#[derive(Clone, Debug)]
pub struct Produced(pub NewBody);

/// What a client was told.
pub(super) struct Acknowledged {
    pub(super) record: domain::RecordId,
    body: BodyRef,
}

impl Checker {
    /// Someone outside makes a result: no two have the same bytes.
    pub fn produce(&mut self, effect: Effect) -> Produced {
        self.produce_with(effect, &[])
    }

    /// The same, with events that come with it.
    pub fn produce_with(&mut self, effect: Effect, emitted: &[Emitted]) -> Produced {
        self.produced += 1;
        let by = effect.attempt.as_ref().map_or("nobody", AttemptId::as_str);
        let event = |one: &Emitted| {
            let payload = String::from_utf8_lossy(&one.payload);
            format!("{{\"type\":\"{}\",\"payload\":{payload}}}", one.kind)
        };
        let events: Vec<String> = emitted.iter().map(event).collect();
        let n = self.produced;
        let text = if events.is_empty() {
            format!("{{\"by\":\"{by}\",\"n\":{n}}}")
        } else {
            format!("{{\"by\":\"{by}\",\"n\":{n},\"events\":[{}]}}", events.join(","))
        };
        let bytes: Arc<[u8]> = Arc::from(text.into_bytes());
        let body = body_ref(BodyName::Result, &bytes);
        self.effects.insert(body.sha256, effect);
        Produced(NewBody { body, bytes })
    }

    /// A client was told that its work is accepted.
    pub fn acknowledge(
        &mut self,
        tables: &Tables,
        key: &IdempotencyKey,
        record: domain::RecordId,
        body: BodyRef,
    ) -> Result<(), Violation> {
        let acknowledged = Acknowledged { record, body };
        if tables.streams.contains_key(&acknowledged.record) {
            acknowledged.is_present(tables, key)?;
            let before = self.acknowledged.insert(key.clone(), acknowledged);
            if let Some(before) = before {
                let now = &self.acknowledged[key];
                must(before.record == now.record && before.body == now.body, "I5", || {
                    format!("key {} was answered with {} and then {}", key.key, before.record, now.record)
                })?;
            }
            return Ok(());
        }
        // It may have been retired while the answer was on its way, but then it was there once.
        must(!self.streams.contains_key(&acknowledged.record), "I0", || {
            format!("{} was acknowledged and is not there", acknowledged.record)
        })
    }

    /// Everything that was acknowledged is there, with its body.
    pub(super) fn all_present(&self, tables: &Tables) -> Result<(), Violation> {
        self.acknowledged.iter().try_for_each(|(key, acknowledged)| acknowledged.is_present(tables, key))
    }

    /// Who produced this result.
    pub(super) fn effect_of(&self, body: &BodyRef) -> Option<&Effect> {
        self.effects.get(&body.sha256)
    }
}

impl Acknowledged {
    fn is_present(&self, tables: &Tables, key: &IdempotencyKey) -> Result<(), Violation> {
        let kept = tables.keys.get(key).is_some_and(|kept| kept.record == self.record);
        must(kept, "I0", || format!("key {} does not lead to {}", key.key, self.record))?;
        let place = (self.record.clone(), self.body.name.as_str(), self.body.sha256);
        let purged = tables.views.get(&self.record).is_none_or(|view| {
            let job = view.as_job();
            job.is_some_and(|job| job.bodies.iter().all(|body| body.name != self.body.name))
        });
        must(purged || tables.bodies.contains_key(&place), "I0", || {
            format!("{} has lost the body that it was accepted with", self.record)
        })
    }
}
