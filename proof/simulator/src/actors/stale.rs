//! Reports that come after the end, many more than are stored: a client that repeats one again and again.
//!
//! It begins when nothing goes wrong any more: what a node counts and has not written down dies with it.

use domain::Record;
use domain::job::{Job, JobState, JobStateName};
use domain::limits::KEPT_EVIDENCE;

use crate::api::Ask;
use crate::client::report_as;
use crate::heap::SECOND;
use crate::world::{Sim, World};

/// How many of a thousand seeds have such a client.
const SEEDS: u32 = 100;
/// How often it reports.
const REPORTS: usize = 2 * KEPT_EVIDENCE;
/// How long the run goes on after the last report.
const UNTIL_COUNTED: i64 = 60 * SECOND;

/// Starts the client, in some seeds.
pub fn start(sim: &Sim) {
    let reports = sim.with(|world| {
        let reports = world.rare.chance(SEEDS);
        world.busy_clients += usize::from(reports);
        reports
    });
    if reports {
        sim.spawn(None, report(sim.clone()));
    }
}

async fn report(sim: Sim) {
    while !sim.with(|world| world.check.calm_since.is_some_and(|since| since <= world.store_time())) {
        sim.sleep(SECOND).await;
    }
    if let Some(report) = sim.with(late_report) {
        for _ in 0..REPORTS {
            sim.with(|world| world.send(report.clone(), None));
            sim.doze(2 * SECOND, 4 * SECOND).await;
        }
        sim.sleep(UNTIL_COUNTED).await;
    }
    sim.with(|world| world.busy_clients -= 1);
}

/// That an attempt has failed whose job is completed.
fn late_report(world: &mut World) -> Option<Ask> {
    let is_done = |job: &&Job| job.state == JobState::Completed && job.last_attempt().is_some();
    let completed = world.check.records().filter_map(Record::as_job).find(is_done)?.clone();
    world.check.must_all_count(completed.id.clone().into());
    let attempt = completed.last_attempt().map(|attempt| attempt.id.clone());
    Some(report_as(world, &completed, attempt, JobStateName::Failed))
}
