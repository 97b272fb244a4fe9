//! What an output or a failure leaves behind: the bodies, and the references to them.

use std::sync::Arc;

use domain::job::ResultRefs;
use domain::{BodyName, BodyRef, RecordId};
use store::{NewBody, body_ref};

use crate::{Failure, OrderBody, Output};

/// The most bytes of an error text that are kept; the rest is cut off.
const MAX_SAID_BYTES: usize = 2_048;

/// What somebody outside says for people, as a record can hold it: the work is not failed for one character.
pub(crate) fn storable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// Bodies that go with an order, each of the record that it is kept for.
#[derive(Debug, Default)]
pub struct Bodies(Vec<OrderBody>);

impl Bodies {
    /// Keeps these bytes.
    pub fn keep(&mut self, record: impl Into<RecordId>, name: BodyName, bytes: Vec<u8>) -> BodyRef {
        let body = body_ref(name, &bytes);
        let new = NewBody { body, bytes: Arc::from(bytes) };
        self.0.push(OrderBody { record: record.into(), body: new });
        body
    }

    /// Also these.
    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<OrderBody> {
        self.0
    }
}

/// Bodies that go with an order, all of one record.
pub(crate) struct Kept {
    record: RecordId,
    bodies: Bodies,
}

impl Kept {
    /// None yet.
    pub(crate) fn of(record: impl Into<RecordId>) -> Self {
        Self { record: record.into(), bodies: Bodies::default() }
    }

    /// Keeps these bytes.
    pub(crate) fn keep(&mut self, name: BodyName, bytes: Vec<u8>) -> BodyRef {
        self.bodies.keep(self.record.clone(), name, bytes)
    }

    /// Keeps what a service said of an error, if it said anything.
    pub(crate) fn said(&mut self, text: &str) -> Option<BodyRef> {
        let text = text.get(..text.floor_char_boundary(MAX_SAID_BYTES)).unwrap_or_default();
        (!text.is_empty()).then(|| self.keep(BodyName::Error, text.as_bytes().to_vec()))
    }

    /// Keeps a result.
    pub(crate) fn output(&mut self, output: Output) -> ResultRefs {
        ResultRefs {
            summary: output.summary.map(storable),
            data: output.data.map(|data| self.keep(BodyName::Result, data)),
            artifacts: output.artifacts.map(|list| self.keep(BodyName::Artifacts, list)),
            emitted: u32::try_from(output.emitted.len()).unwrap_or(u32::MAX),
            left_files: output.left_files,
            error: None,
        }
    }

    /// Keeps what there is to see of a failure.
    pub(crate) fn failure(&mut self, failure: Failure) -> ResultRefs {
        let mut error = serde_json::json!({ "code": failure.reason, "message": failure.message });
        if let Some(details) = failure.details {
            error["details"] = *details;
        }
        ResultRefs {
            error: Some(self.keep(BodyName::Error, error.to_string().into_bytes())),
            artifacts: failure.artifacts.map(|list| self.keep(BodyName::Artifacts, list)),
            ..ResultRefs::default()
        }
    }

    /// All of them.
    pub(crate) fn into_bodies(self) -> Vec<OrderBody> {
        self.bodies.into_vec()
    }
}
