//! Events that start runs: a pipeline of three no-op steps, from the publishing of its event to the end of its run.

use std::time::Duration;

use anyhow::Result;

use super::executors::Files;
use crate::bench::Measured;
use crate::host::{Host, Over, Unit};
use crate::line::{Bound, Line};
use crate::service::ServiceProcess;
use crate::site::Ground;

const CONNECTIONS: usize = 16;

/// One kind of work.
pub fn measure(ground: &Ground, time: Duration) -> Result<Measured> {
    let service = ServiceProcess::start(&ground.binary)?;
    let files = Files::make(ground, &service)?;
    let host = Host::start(ground.site()?, &["--config".as_ref(), files.config().as_os_str()])?;
    let unit = Unit {
        what: "runs of a pipeline of three no-op steps, from their event to their end".to_owned(),
        path: "/events",
        body: r#"{"type":"tide.changed","payload":{"station":"north-harbour","level_mm":2140}}"#.to_owned(),
        connections: CONNECTIONS,
        over: Over::Run,
        at_least: Duration::ZERO,
    };
    ground.say("pipelines: runs of three steps");
    let work = host.work(&unit, time)?;
    let mut measured = Measured::default();
    if let Some(raw) = &work.raw {
        measured.lines.push(Line {
            what: format!("runs of three no-op steps, and raw SQL in transactions of {}", raw.facts()),
            measured: format!("{:.0}/s", work.per_second),
            against: format!("{:.0}/s", raw.per_second),
            figure: work.per_second / raw.per_second,
            bound: Bound::Told,
        });
    }
    measured.works.push(work);
    Ok(measured)
}
