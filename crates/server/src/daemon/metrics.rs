//! Figures for Prometheus: counted as requests pass, read when asked for. Labels are few and never hold an id.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use domain::job::JobStateName;

use crate::operations::{Route, operations};
use crate::problem::of_store;
use crate::reply::{Content, Reply};
use crate::{Result, Server};

/// The upper bounds of the duration histogram, in seconds.
const BOUNDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0, 10.0];
/// The classes of answers: 1xx to 5xx.
const CLASSES: usize = 5;

pub(crate) struct Metrics {
    by_operation: Vec<OfOperation>,
    accepted: AtomicU64,
    stale_reports: AtomicU64,
    streams: AtomicI64,
}

#[derive(Default)]
struct OfOperation {
    by_class: [AtomicU64; CLASSES],
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            by_operation: operations().map(|_| OfOperation::default()).collect(),
            accepted: AtomicU64::default(),
            stale_reports: AtomicU64::default(),
            streams: AtomicI64::default(),
        }
    }
}

impl Metrics {
    /// A request was answered.
    pub(crate) fn answered(&self, route: &Route, status: u16, took: Duration) {
        let figures = &self.by_operation[route.index];
        let class = usize::from(status / 100).clamp(1, CLASSES) - 1;
        figures.by_class[class].fetch_add(1, Ordering::Relaxed);
        figures.count.fetch_add(1, Ordering::Relaxed);
        figures.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        if let Some(bucket) = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound) {
            figures.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A job was accepted.
    pub(crate) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// A report of an attempt that was not current was refused.
    pub(crate) fn stale_report(&self) {
        self.stale_reports.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stream_opened(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stream_closed(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    fn write(&self, page: &mut Page) {
        page.family("longhaul_http_requests_total", "counter", "Requests answered.");
        for (operation, figures) in operations().zip(&self.by_operation) {
            for (class, count) in figures.by_class.iter().enumerate().skip(1) {
                let labels = format!("operation=\"{}\",code=\"{}xx\"", operation.name, class + 1);
                page.sample("longhaul_http_requests_total", &labels, count.load(Ordering::Relaxed));
            }
        }
        page.family("longhaul_http_request_duration_seconds", "histogram", "Time to the answer.");
        for (operation, figures) in operations().zip(&self.by_operation) {
            let name = operation.name;
            let mut below = 0;
            for (bound, bucket) in BOUNDS.iter().zip(&figures.buckets) {
                below += bucket.load(Ordering::Relaxed);
                let labels = format!("operation=\"{name}\",le=\"{bound}\"");
                page.sample("longhaul_http_request_duration_seconds_bucket", &labels, below);
            }
            let count = figures.count.load(Ordering::Relaxed).max(below);
            let all = format!("operation=\"{name}\",le=\"+Inf\"");
            page.sample("longhaul_http_request_duration_seconds_bucket", &all, count);
            let labels = format!("operation=\"{name}\"");
            let micros = Duration::from_micros(figures.micros.load(Ordering::Relaxed));
            page.sample("longhaul_http_request_duration_seconds_sum", &labels, micros.as_secs_f64());
            page.sample("longhaul_http_request_duration_seconds_count", &labels, count);
        }
        let accepted = self.accepted.load(Ordering::Relaxed);
        page.counter("longhaul_jobs_accepted_total", "Jobs accepted over HTTP.", accepted);
        let help = "Reports refused because their attempt was not current any more.";
        page.counter("longhaul_stale_reports_total", help, self.stale_reports.load(Ordering::Relaxed));
        let streams = self.streams.load(Ordering::Relaxed);
        page.gauge("longhaul_fact_streams", "Open streams of the ledger.", streams);
    }
}

/// `GET /metrics`.
pub(crate) async fn read(server: &Server) -> Result<Reply> {
    let counts = server.store().job_counts().await.map_err(of_store)?;
    let mut page = Page::default();
    page.family("longhaul_build_info", "gauge", "The version that runs.");
    page.sample("longhaul_build_info", concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""), 1);
    page.family("longhaul_jobs", "gauge", "Jobs by state.");
    for state in JobStateName::ALL {
        let count = counts.iter().find(|(counted, _)| *counted == state).map_or(0, |(_, count)| *count);
        page.sample("longhaul_jobs", &format!("state=\"{state}\""), count);
    }
    let orphans = server.store().orphan_count().await.map_err(of_store)?;
    let help = "Work that may still run outside although it is over here.";
    page.gauge("longhaul_orphans", help, orphans);
    let clock = server.daemon.engine().clock().status();
    let help = "The wall clock minus the store's time; 0 while they agree.";
    page.gauge("longhaul_clock_step_seconds", help, clock.step_seconds());
    let help = "1 while the store's time is ahead and waits to be set right.";
    page.gauge("longhaul_clock_waits_for_operator", help, u8::from(!clock.adopted_by_itself));
    let help = "Steps of the wall clock seen by this process.";
    page.counter("longhaul_clock_steps_total", help, clock.steps_seen);
    let running = server.daemon.attempts().count();
    page.gauge("longhaul_attempts_running", "Attempts that run on this node.", running);
    let pulls = server.daemon.pulls();
    page.gauge("longhaul_pullers_waiting", "Who waits on this node for work to do.", pulls.count());
    let help = "Jobs handed out to those who pull.";
    page.counter("longhaul_jobs_handed_out_total", help, pulls.handed_out());
    let help = "How often the store was asked for such jobs.";
    page.counter("longhaul_hand_out_questions_total", help, pulls.questions());
    let help = "Reads that met a stored body whose bytes are not those of its record.";
    page.counter("longhaul_damaged_body_reads_total", help, store::damaged_body_reads());
    let position = *server.daemon.ledger().borrow();
    page.gauge("longhaul_ledger_position", "The highest position committed by this process.", position);
    server.metrics.write(&mut page);
    Ok(Reply::of(Content::Bytes {
        media_type: "text/plain; version=0.0.4; charset=utf-8",
        bytes: page.text.into_bytes(),
    }))
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// A figure without labels that only rises.
    fn counter(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, "counter", help);
        self.sample(name, "", value);
    }

    /// A figure without labels that rises and falls.
    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, "gauge", help);
        self.sample(name, "", value);
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = if labels.is_empty() {
            writeln!(self.text, "{name} {value}")
        } else {
            writeln!(self.text, "{name}{{{labels}}} {value}")
        };
    }
}
