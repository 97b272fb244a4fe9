//! Peers: executors outside that pull their work and report with nothing but the attempt's id.
//!
//! They survive every node. Some lose interest, some report long after their lease, some report twice.

use domain::job::{JobStateName, Reporter, Retryable};
use domain::{AttemptId, Claim, JobId, OwnerId};

use crate::api::{Ask, Reported, Say, ask, intruder, peers};
use crate::client::produce;
use crate::counters::Struck;
use crate::executor::INTRUSIONS;
use crate::heap::SECOND;
use crate::script::cancel_answer;
use crate::world::Sim;

/// How often a report that is not answered is sent again.
const MAX_REPORTS: usize = 5;

/// Starts the peers of a run.
pub fn start(sim: &Sim) {
    let peers = sim.with(|world| world.setting.peers);
    for number in 0..peers {
        let owner = OwnerId::new(format!("peer-{number}"));
        sim.with(|world| world.owners.insert(owner.clone()));
        sim.spawn(None, pull(sim.clone(), owner));
    }
}

async fn pull(sim: Sim, owner: OwnerId) {
    loop {
        sim.doze(SECOND, 10 * SECOND).await;
        if let Some(Say::Pulled(job, attempt, claim)) = ask(&sim, Ask::Pull(owner.clone())).await {
            work(&sim, job, attempt, claim).await;
        }
    }
}

async fn work(sim: &Sim, job: JobId, attempt: AttemptId, mut claim: Claim) {
    let (misbehaves, mut left, lease) = sim.with(|world| {
        let lease = world.setting.lease_micros;
        let misbehaves = world.rng.chance(world.faults.executor);
        if misbehaves {
            world.counters.struck(Struck::Executor);
        }
        let most = if world.is_calm() { 10 * SECOND } else { 2 * lease };
        (misbehaves, world.rng.within(0, most), lease)
    });
    // A misbehaving peer says nothing until it is done, or never anything.
    if misbehaves {
        sim.sleep(left).await;
        left = 0;
        if sim.with(|world| world.rng.chance(400)) {
            return;
        }
        sim.doze(0, 2 * lease).await;
    }
    while left > 0 {
        let wait = left.min(lease / 3);
        sim.sleep(wait).await;
        left -= wait;
        // Wanted or not, it goes on, and tells in the end what it has done.
        let beat = Ask::Heartbeat(job.clone(), attempt.clone(), claim.fence());
        if let Some(Say::Beat(renewed, cancels)) = ask(sim, beat).await {
            claim = renewed;
            if cancels {
                let answer = sim.with(|world| cancel_answer(&mut world.rng));
                ask(sim, Ask::CancelAnswer(job.clone(), attempt.clone(), answer)).await;
            }
        }
    }
    report(sim, job, attempt, misbehaves).await;
}

async fn report(sim: &Sim, job: JobId, attempt: AttemptId, misbehaves: bool) {
    let report = sim.with(|world| {
        let calm = world.is_calm();
        let state = match world.rng.below(10) {
            0..=6 => JobStateName::Completed,
            _ if calm => JobStateName::Completed,
            7..=8 => JobStateName::Failed,
            _ => JobStateName::AwaitingInput,
        };
        let result = (state == JobStateName::Completed).then(|| produce(world, &job, Some(attempt.clone())));
        Reported {
            job: job.clone(),
            attempt: Some(attempt.clone()),
            state,
            result,
            retryable: Retryable::Yes,
            by: Reporter::Caller(peers()),
        }
    });
    if sim.with(|world| world.rng.chance(INTRUSIONS)) {
        let forged = Reported { result: None, state: JobStateName::Failed, by: intruder(), ..report.clone() };
        ask(sim, Ask::Report(forged)).await;
    }
    for _ in 0..MAX_REPORTS {
        match ask(sim, Ask::Report(report.clone())).await {
            Some(Say::Unknown) | None => sim.doze(SECOND / 2, 10 * SECOND).await,
            Some(_) => break,
        }
    }
    if misbehaves {
        // Once more, with another result.
        let again = sim.with(|world| {
            let result = Some(produce(world, &job, Some(attempt.clone())));
            Reported { result, state: JobStateName::Completed, ..report }
        });
        ask(sim, Ask::Report(again)).await;
    }
}
