//! Figures for Prometheus: counted as requests pass, read when asked for. Labels are few and never hold an id.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use api::Problem;
use domain::job::JobStateName;

use crate::operations::{Route, operations};
use crate::problem::of_store;
use crate::reply::{Content, Reply};
use crate::server::Server;

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
        page.family("longhaul_jobs_accepted_total", "counter", "Jobs accepted over HTTP.");
        page.sample("longhaul_jobs_accepted_total", "", self.accepted.load(Ordering::Relaxed));
        page.family(
            "longhaul_stale_reports_total",
            "counter",
            "Reports refused because their attempt was not current any more.",
        );
        page.sample("longhaul_stale_reports_total", "", self.stale_reports.load(Ordering::Relaxed));
        page.family("longhaul_fact_streams", "gauge", "Open streams of the ledger.");
        page.sample("longhaul_fact_streams", "", self.streams.load(Ordering::Relaxed));
    }
}

/// `GET /metrics`.
pub(crate) async fn read(server: &Server) -> Result<Reply, Problem> {
    let counts = server.store().job_counts().await.map_err(|error| of_store(&error))?;
    let mut page = Page::default();
    page.family("longhaul_build_info", "gauge", "The version that runs.");
    page.sample("longhaul_build_info", concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""), 1);
    page.family("longhaul_jobs", "gauge", "Jobs by state.");
    for state in JobStateName::ALL {
        let count = counts.iter().find(|(counted, _)| *counted == state).map_or(0, |(_, count)| *count);
        page.sample("longhaul_jobs", &format!("state=\"{state}\""), count);
    }
    let orphans = server.store().orphan_count().await.map_err(|error| of_store(&error))?;
    page.family("longhaul_orphans", "gauge", "Work that may still run outside although it is over here.");
    page.sample("longhaul_orphans", "", orphans);
    let clock = server.daemon.engine().clock().status();
    page.family(
        "longhaul_clock_step_seconds",
        "gauge",
        "The wall clock minus the store's time; 0 while they agree.",
    );
    page.sample("longhaul_clock_step_seconds", "", clock.step_seconds());
    page.family(
        "longhaul_clock_waits_for_operator",
        "gauge",
        "1 while the store's time is ahead and waits to be set right.",
    );
    page.sample("longhaul_clock_waits_for_operator", "", u8::from(!clock.adopted_by_itself));
    page.family("longhaul_clock_steps_total", "counter", "Steps of the wall clock seen by this process.");
    page.sample("longhaul_clock_steps_total", "", clock.steps_seen);
    page.family("longhaul_attempts_running", "gauge", "Attempts that run on this node.");
    page.sample("longhaul_attempts_running", "", server.daemon.attempts().count());
    let pulls = server.daemon.pulls();
    page.family("longhaul_pullers_waiting", "gauge", "Who waits on this node for work to do.");
    page.sample("longhaul_pullers_waiting", "", pulls.count());
    page.family("longhaul_jobs_handed_out_total", "counter", "Jobs handed out to those who pull.");
    page.sample("longhaul_jobs_handed_out_total", "", pulls.handed_out());
    page.family(
        "longhaul_hand_out_questions_total",
        "counter",
        "How often the store was asked for such jobs.",
    );
    page.sample("longhaul_hand_out_questions_total", "", pulls.questions());
    page.family(
        "longhaul_damaged_body_reads_total",
        "counter",
        "Reads that met a stored body whose bytes are not those of its record.",
    );
    page.sample("longhaul_damaged_body_reads_total", "", store::damaged_body_reads());
    page.family("longhaul_ledger_position", "gauge", "The highest position committed by this process.");
    page.sample("longhaul_ledger_position", "", *server.daemon.ledger().borrow());
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

    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = if labels.is_empty() {
            writeln!(self.text, "{name} {value}")
        } else {
            writeln!(self.text, "{name}{{{labels}}} {value}")
        };
    }
}
