//! Stores full of finished jobs, decided by the same rules as in the daemon and written in large commits.

use std::sync::Arc;

use anyhow::{Result, bail};
use domain::attention::Retention;
use domain::job::{
    Details, Dispatch, Holder, JobCommand, JobSpec, JobStateName, NewJob, Report, Reporter, ResultRefs,
    Retryable, SubmitWord, Trigger,
};
use domain::record::{apply, decide};
use domain::{
    BodyName, Command, Consequence, Decision, Jitter, Lease, OwnerId, RecordId, RetryPolicy, Timestamp,
};
use engine::{Clock, Ids, RandomIds, SystemClock};
use store::{Change, Commit, Head, NewBody, NewFact, Removal, Urgency, body_ref};
use store_sql::Durability;

use crate::cycle::{EXECUTOR, INPUT, RESULT};
use crate::site::Site;

/// Jobs in one commit.
const JOBS_PER_COMMIT: usize = 500;

/// Fills the store of a site; the records that are there now.
pub fn finished(site: &Site<'_>, jobs: usize) -> Result<Vec<RecordId>> {
    // What is measured afterwards is not how this was written.
    let opened = site.open(Durability::Relaxed)?;
    let store = opened.store();
    let at = SystemClock::starting_at(Timestamp::default()).now();
    let mut ids = Vec::with_capacity(jobs);
    for first in (0..jobs).step_by(JOBS_PER_COMMIT) {
        site.ground.go_on()?;
        let changes: Vec<Change> =
            (first..jobs.min(first + JOBS_PER_COMMIT)).map(|_| finished_job(at)).collect::<Result<_>>()?;
        ids.extend(changes.iter().map(|change| change.id.clone()));
        site.ground.runtime.block_on(store.commit(commit(at, changes)))?;
    }
    drop(store);
    opened.close(site.ground);
    Ok(ids)
}

/// One commit of new records.
pub fn commit(at: Timestamp, changes: Vec<Change>) -> Commit {
    Commit {
        at,
        actor: Arc::from("bench"),
        causation_id: None,
        correlation_id: None,
        changes,
        keys: Vec::new(),
        asks: Vec::new(),
        plugin_states: Vec::new(),
        urgency: Urgency::Result,
        lease: Lease::DEFAULT,
    }
}

fn finished_job(at: Timestamp) -> Result<Change> {
    let (job_id, attempt_id) = (RandomIds.job_id(), RandomIds.attempt_id());
    let retry = RetryPolicy { max_attempts: 3, backoff_seconds: 1, max_backoff_seconds: 60 };
    let spec = JobSpec { title: "render the cover".to_owned(), ..JobSpec::plain(Some(EXECUTOR), retry) };
    let (input, data) = (body_ref(BodyName::Input, INPUT), body_ref(BodyName::Result, RESULT));
    let owner = OwnerId::new("node-bench-boot-1");
    let result = ResultRefs { data: Some(data), ..ResultRefs::default() };
    let commands = [
        JobCommand::Create(Box::new(NewJob { spec, due_at: None, bodies: vec![input] })),
        JobCommand::Dispatch(Dispatch {
            attempt_id: attempt_id.clone(),
            owner,
            trigger: Trigger::Automatic,
            holder: Holder::Daemon,
        }),
        JobCommand::Report(Box::new(Report {
            attempt_id: Some(attempt_id),
            state: JobStateName::Completed,
            details: Details { result, ..Details::default() },
            retryable: Retryable::Yes,
            jitter: Jitter::default(),
            submit: SubmitWord::Unsaid,
            by: Reporter::Daemon,
        })),
    ];
    let body = |body, bytes: &[u8]| NewBody { body, bytes: Arc::from(bytes) };
    let bodies = vec![body(input, INPUT), body(data, RESULT)];
    Ok(change(at, job_id.into(), commands.map(Command::Job).into(), bodies)?.0)
}

/// A new record after these commands, and what follows for others.
pub fn change(
    at: Timestamp,
    id: RecordId,
    commands: Vec<Command>,
    bodies: Vec<NewBody>,
) -> Result<(Change, Vec<Consequence>)> {
    let (mut state, mut facts, mut follows) = (None, Vec::new(), Vec::new());
    for command in commands {
        match decide(state.as_ref(), &id, &command, at) {
            Decision::Facts { facts: decided, consequences } => {
                for fact in decided {
                    apply(&mut state, &id, &fact, at)?;
                    facts.push(NewFact { id: RandomIds.fact_id(), fact });
                }
                follows.extend(consequences);
            }
            Decision::Nothing => {}
            Decision::Refused { refusal, .. } => bail!("{id}: {refusal}"),
        }
    }
    let Some(record) = state.map(Arc::new) else { bail!("{id} did not begin") };
    let change = Change {
        id,
        expected: Head::default(),
        facts,
        agenda: record.schedule(Retention::DEFAULT).entry(at),
        record,
        bodies,
        fence: None,
        removal: Removal::Nothing,
    };
    Ok((change, follows))
}
