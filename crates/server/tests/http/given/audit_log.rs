//! The lines of the audit log, as a test reads them.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The lines of the audit log.
#[derive(Clone, Default)]
pub struct AuditLog(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 = format!("{}{field}={value:?} ", self.0);
    }
}

impl AuditLog {
    /// All that this process writes from now on: each test is its own process.
    pub fn install() -> Self {
        let log = Self::default();
        tracing::subscriber::set_global_default(log.clone()).expect("there is no other");
        log
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().expect("no holder of the lock panics").clone()
    }
}

impl Subscriber for AuditLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "audit"
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().expect("no holder of the lock panics").push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
