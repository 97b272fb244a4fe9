//! Commits as the engine builds them, but without the rules: states folded, agenda asked, nothing decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::attention::Retention;
use domain::job::{
    AfterExternal, Conclusion, Details, JobFact, JobSpec, NewJob, ResultRefs, Trigger, Unavailability,
};
use domain::operation::{
    Accepted, Cancelability, Ending, ExpiryCause, OperationFact, OperationLink, Polled, ReportedStatus,
    Settlement,
};
use domain::policy::KindPolicy;
use domain::record::apply;
use domain::{
    AttemptId, BodyName, BodyRef, Checkpoint, Digest, Fact, Fence, JobId, Lease, OperationId, OwnerId,
    RecordId, RecordKind, RetryPolicy, Timestamp,
};
use store::{
    Change, Commit, Committed, FactId, Head, IdempotencyKey, JobQuery, KeptKey, Loaded, NewBody, NewFact,
    Page, Removal, Store, StoredFact, Take, Taken, Urgency, VIEW_FORMAT, body_ref,
};

/// The lane of the jobs that these tests make, unless they say otherwise.
pub const LANE: &str = "render";

/// The beginning of every test's time.
pub const START: Timestamp = Timestamp::from_seconds(1_800_000_000);

/// So many seconds after the beginning.
pub fn at(seconds: u64) -> Timestamp {
    START.plus_seconds(seconds)
}

pub fn job(name: &str) -> RecordId {
    RecordId::Job(JobId::new(format!("work-{name}")))
}

pub fn operation(name: &str) -> RecordId {
    RecordId::Operation(OperationId::new(format!("op-{name}")))
}

pub fn owner(name: &str) -> OwnerId {
    OwnerId::new(name)
}

// Facts.

pub fn new_job() -> NewJob {
    let retry = RetryPolicy { max_attempts: 3, backoff_seconds: 1, max_backoff_seconds: 60 };
    NewJob { spec: JobSpec::plain(Some(LANE), retry), due_at: None, bodies: Vec::new() }
}

/// A new job, changed a little.
pub fn created_with(change: impl FnOnce(&mut NewJob)) -> Fact {
    let mut new = new_job();
    change(&mut new);
    Fact::Job(JobFact::Created(Box::new(new)))
}

pub fn created() -> Fact {
    created_with(|_| {})
}

pub fn dispatched(number: u32) -> Fact {
    Fact::Job(JobFact::Dispatched {
        attempt_id: AttemptId::new(format!("attempt-{number}")),
        number,
        owner: owner("node-a"),
        trigger: Trigger::Automatic,
        holder: domain::job::Holder::Daemon,
    })
}

pub fn noted(note: &str) -> Fact {
    Fact::Job(JobFact::Noted(Details { note: Some(note.to_owned()), ..Details::default() }))
}

pub fn completed() -> Fact {
    Fact::Job(JobFact::Completed(Details::default()))
}

pub fn completed_with(data: BodyRef) -> Fact {
    let result = ResultRefs { data: Some(data), ..ResultRefs::default() };
    Fact::Job(JobFact::Completed(Details { result, ..Details::default() }))
}

pub fn failed_with(error: BodyRef) -> Fact {
    let result = ResultRefs { error: Some(error), ..ResultRefs::default() };
    Fact::Job(JobFact::Failed(Details { result, ..Details::default() }))
}

pub fn lease_lost() -> Fact {
    let details = Details::default();
    Fact::Job(JobFact::BecameUnavailable(Conclusion { cause: Unavailability::LeaseLost, details }))
}

pub fn deferred(operation: &RecordId) -> Fact {
    let operation_id = OperationId::new(operation.as_str());
    Fact::Job(JobFact::Deferred { operation_id, then: AfterExternal::Finish })
}

/// The beginning of an operation of this job that is polled first at `next_poll_at`.
pub fn accepted(job: &RecordId, next_poll_at: Timestamp) -> Fact {
    Fact::Operation(OperationFact::Dispatched(Box::new(Accepted {
        link: OperationLink {
            job_id: JobId::new(job.as_str()),
            attempt_id: AttemptId::new("attempt-1"),
            kind: "render".to_owned(),
            specialist: "render-farm".to_owned(),
            circle: None,
        },
        handle: Some(body_ref(BodyName::Handle, b"render-7")),
        cancelability: Cancelability::Cancelable,
        interval_seconds: 5,
        progress_hint: Some("in the queue".to_owned()),
        invalid_hint: false,
        next_poll_at,
        expires_at: at(900),
        policy: KindPolicy::default(),
        bounded_by: None,
        asked_retry_after_seconds: None,
        asked_ttl_seconds: None,
        external_job_id: None,
    })))
}

/// The same of work that its service knows by this id.
pub fn known_as(external_job_id: &str, job: &RecordId, next_poll_at: Timestamp) -> Fact {
    let Fact::Operation(OperationFact::Dispatched(mut accepted)) = accepted(job, next_poll_at) else {
        unreachable!("it begins an operation")
    };
    accepted.external_job_id = Some(external_job_id.to_owned());
    Fact::Operation(OperationFact::Dispatched(accepted))
}

pub fn failed_outside() -> Fact {
    Fact::Operation(OperationFact::Resolved(Ending::Failed {
        failure_detail: "out of paper".to_owned(),
        error_code: Some("no_paper".to_owned()),
        result: ResultRefs::default(),
    }))
}

pub fn polled(next_poll_at: Timestamp) -> Fact {
    Fact::Operation(OperationFact::Polled(Polled {
        status: Some(ReportedStatus::Running),
        interval_seconds: Some(30),
        asked_retry_after_seconds: None,
        progress_hint: Some("page 2".to_owned()),
        progress: None,
        expires_at: None,
        error: None,
        invalid_hint: false,
        next_poll_at,
    }))
}

pub fn resolved() -> Fact {
    Fact::Operation(OperationFact::Resolved(Ending::Completed { result: ResultRefs::default() }))
}

pub fn resolved_with(data: BodyRef) -> Fact {
    let result = ResultRefs { data: Some(data), ..ResultRefs::default() };
    Fact::Operation(OperationFact::Resolved(Ending::Completed { result }))
}

/// The host gave it up while its work may have gone on.
pub fn given_up() -> Fact {
    Fact::Operation(OperationFact::Expired { cause: ExpiryCause::LifetimeOver })
}

/// Somebody has looked.
pub fn settled() -> Fact {
    let note = "the farm is switched off".to_owned();
    Fact::Operation(OperationFact::Settled(Settlement::ByHand { by: None, note }))
}

// Changes and commits.

/// The change that these facts make to a record as it was loaded.
pub fn change(id: &RecordId, loaded: Option<&Loaded>, facts: Vec<Fact>, at: Timestamp) -> Change {
    let mut state = loaded.map(|loaded| (*loaded.record).clone());
    for fact in &facts {
        apply(&mut state, id, fact, at).unwrap();
    }
    let record = state.expect("a change leaves a state");
    Change {
        id: id.clone(),
        expected: loaded.map_or(Head::default(), |loaded| loaded.head),
        facts: facts.into_iter().map(|fact| NewFact { id: next_fact_id(), fact }).collect(),
        agenda: record.schedule(Retention::DEFAULT).entry(at),
        record: Arc::new(record),
        bodies: Vec::new(),
        fence: None,
        removal: Removal::Nothing,
    }
}

/// A new record.
pub fn creation(id: &RecordId, fact: Fact, at: Timestamp) -> Change {
    change(id, None, vec![fact], at)
}

pub fn commit(changes: Vec<Change>, at: Timestamp) -> Commit {
    Commit {
        at,
        actor: Arc::from("tester"),
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

/// The same commit under other names for its facts.
pub fn under_other_fact_ids(mut commit: Commit) -> Commit {
    for change in &mut commit.changes {
        for fact in &mut change.facts {
            fact.id = next_fact_id();
        }
    }
    commit
}

pub fn next_fact_id() -> FactId {
    static GIVEN: AtomicU64 = AtomicU64::new(1);
    FactId(u128::from(GIVEN.fetch_add(1, Ordering::Relaxed)).to_be_bytes())
}

/// The change that these facts make to the record as it is now.
pub async fn next_change(store: &dyn Store, id: &RecordId, facts: Vec<Fact>, at: Timestamp) -> Change {
    let loaded = store.load(id).await.unwrap();
    change(id, loaded.as_ref(), facts, at)
}

/// Writes facts on one record.
pub async fn write(store: &dyn Store, id: &RecordId, facts: Vec<Fact>, at: Timestamp) -> Committed {
    let change = next_change(store, id, facts, at).await;
    store.commit(commit(vec![change], at)).await.unwrap()
}

/// The change that these facts make to the record as it is now, after a checkpoint of it.
pub async fn checkpointed_change(
    store: &dyn Store,
    id: &RecordId,
    facts: Vec<Fact>,
    at: Timestamp,
) -> Change {
    let loaded = store.load(id).await.unwrap().unwrap();
    let checkpoint = Checkpoint::new(VIEW_FORMAT, loaded.head.checksum, (*loaded.record).clone());
    let checkpoint = Fact::Checkpointed { checkpointed: Box::new(checkpoint) };
    let facts = [checkpoint].into_iter().chain(facts).collect();
    Change { removal: Removal::OlderFacts, ..change(id, Some(&loaded), facts, at) }
}

/// Polls an operation so often, each a second after the one before, and then once more after a checkpoint. The version of the checkpoint.
pub async fn checkpoint(store: &dyn Store, id: &RecordId, polls: u64, from: u64) -> u64 {
    for second in from..from + polls {
        write(store, id, vec![polled(at(second + 30))], at(second)).await;
    }
    let last = from + polls;
    let change = checkpointed_change(store, id, vec![polled(at(last + 30))], at(last)).await;
    let version = change.expected.version + 1;
    store.commit(commit(vec![change], at(last))).await.unwrap();
    version
}

/// Creates plain jobs, each a microsecond after the one before.
pub async fn create_jobs(store: &dyn Store, names: impl IntoIterator<Item = String>) -> Vec<RecordId> {
    let mut ids = Vec::new();
    for (name, micros) in names.into_iter().zip(0..) {
        let id = job(&name);
        write(store, &id, vec![created()], START.plus_micros(micros)).await;
        ids.push(id);
    }
    ids
}

// Bodies and keys.

pub fn new_body(name: BodyName, bytes: &[u8]) -> NewBody {
    NewBody { body: body_ref(name, bytes), bytes: Arc::from(bytes) }
}

pub fn key(name: &str) -> IdempotencyKey {
    IdempotencyKey { principal: "token:ada".to_owned(), route: "POST /jobs".to_owned(), key: name.to_owned() }
}

pub fn kept(key: IdempotencyKey, record: &RecordId, answer: &[u8]) -> KeptKey {
    KeptKey {
        key,
        request_sha256: Digest([7; 32]),
        record: record.clone(),
        answer: Arc::from(answer),
        keep_until: at(86_400),
    }
}

// Claims.

pub fn take(owner_name: &str, now: Timestamp, limit: usize) -> Take {
    Take::by(owner(owner_name), now, Lease::DEFAULT, limit)
}

pub async fn taken(store: &dyn Store, id: &RecordId, owner_name: &str, now: Timestamp) -> Taken {
    store.take(id, take(owner_name, now, 1)).await.unwrap()
}

/// The ids that were taken, in their order.
pub fn ids(taken: &[Taken]) -> Vec<&str> {
    taken.iter().map(|taken| taken.id.as_str()).collect()
}

pub fn fence(owner_name: &str, claim_version: u64) -> Fence {
    Fence { owner: owner(owner_name), claim_version }
}

// What can be seen.

/// Everything that a store shows, but for bodies and keys, which can only be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    facts: Vec<StoredFact>,
    records: Vec<Option<Loaded>>,
    jobs: Page,
    due: [Option<Timestamp>; 2],
}

pub async fn sight(store: &dyn Store) -> Sight {
    let facts = store.facts_after(0, usize::MAX).await.unwrap();
    let streams: std::collections::BTreeSet<_> = facts.iter().map(|fact| fact.stream.clone()).collect();
    let mut records = Vec::new();
    for id in &streams {
        records.push(store.load(id).await.unwrap());
    }
    Sight {
        facts,
        records,
        jobs: store.jobs(JobQuery { limit: usize::MAX, ..JobQuery::default() }).await.unwrap(),
        due: [
            store.earliest_due(RecordKind::Job).await.unwrap(),
            store.earliest_due(RecordKind::Operation).await.unwrap(),
        ],
    }
}

/// Uses a store for a while: jobs in every stage of life, an operation, bodies, keys, claims.
pub async fn live_in(store: &dyn Store) {
    for name in ["queued", "running", "outside", "done", "lost"] {
        let body = new_body(BodyName::Input, name.as_bytes());
        let named = created_with(|new| {
            new.spec.circle = Some("press".to_owned());
            new.spec.owner_peer_id = Some("peer-ada".to_owned());
            new.bodies = vec![body.body];
        });
        let mut creating = creation(&job(name), named, at(0));
        creating.bodies = vec![body];
        let mut step = commit(vec![creating], at(0));
        step.keys = vec![kept(key(name), &job(name), b"created")];
        store.commit(step).await.unwrap();
    }
    write(store, &job("later"), vec![created_with(|new| new.due_at = Some(at(500)))], at(1)).await;
    for name in ["running", "outside", "done", "lost"] {
        taken(store, &job(name), "node-a", at(2)).await;
        write(store, &job(name), vec![dispatched(1), noted("begun")], at(2)).await;
    }
    let deferring = next_change(store, &job("outside"), vec![deferred(&operation("press"))], at(3)).await;
    let mut accepting = creation(&operation("press"), accepted(&job("outside"), at(8)), at(3));
    accepting.bodies = vec![new_body(BodyName::Handle, b"render-7")];
    store.commit(commit(vec![deferring, accepting], at(3))).await.unwrap();
    taken(store, &operation("press"), "node-a", at(8)).await;
    write(store, &operation("press"), vec![polled(at(38))], at(9)).await;
    write(store, &job("lost"), vec![lease_lost()], at(62)).await;
    let result = new_body(BodyName::Result, b"{\"pages\":12}");
    let mut ending = next_change(store, &job("done"), vec![completed_with(result.body)], at(63)).await;
    ending.bodies = vec![result];
    store.commit(commit(vec![ending], at(63))).await.unwrap();
}
