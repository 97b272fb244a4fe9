//! Stores full of operations that are open: each with its job, its intent and its handle, decided by the same rules as in the daemon
//! and written in large commits.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use domain::job::{AfterExternal, Dispatch, Holder, Intent, JobCommand, JobSpec, NewJob, Resubmit, Trigger};
use domain::operation::{Cancelability, NewOperation};
use domain::policy::{Hint, KindPolicy};
use domain::{BodyName, Command, Consequence, JobId, OperationId, OwnerId, RetryPolicy, Timestamp};
use engine::{Ids, RandomIds};
use measure::fill::{change, commit};
use serde_json::json;
use store::{Change, Commit, NewBody, Store, body_ref, sha256};
use store_sql::{Durability, SqliteOptions, SqliteStore};
use tokio::task::JoinSet;

use crate::cycle::INPUT;
use crate::daemon::Place;

/// Jobs in one commit; each has an operation.
const JOBS_PER_COMMIT: usize = 500;
/// Commits that are made ready while one is written.
const AT_A_TIME: usize = 4;
/// No operation of the bench ends by itself.
const TTL_SECONDS: u64 = 30 * 86_400;

/// The operations that a store is filled with.
#[derive(Clone)]
pub struct Open {
    /// What their services are called, and how many operations each has.
    pub kinds: Vec<(String, usize)>,
    /// Where the services are.
    pub service: SocketAddr,
    /// When they were accepted.
    pub at: Timestamp,
    /// They are due so long after that, and evenly over as long again.
    pub due_after_seconds: u32,
    /// How many questions the host allows at the same time.
    pub at_once: AtOnce,
}

/// How many questions the host allows at the same time.
#[derive(Clone, Copy)]
pub struct AtOnce {
    pub per_service: u32,
    pub in_all: u32,
}

impl AtOnce {
    /// What a host allows that says nothing.
    pub const USUAL: Self = Self { per_service: 4, in_all: 32 };
    /// What one allows that has very many.
    pub const MANY: Self = Self { per_service: 16, in_all: 256 };
}

impl Open {
    /// Fills the store of a new data directory.
    pub fn fill(self, place: &Place, data_dir: &Path) -> Result<()> {
        let path = data_dir.join("longhaul.sqlite");
        // What is measured afterwards is not how this was written.
        let options = SqliteOptions { durability: Durability::Relaxed, ..SqliteOptions::at(path) };
        let store = Arc::new(SqliteStore::open(&options)?);
        place.runtime.block_on(self.written(store))
    }

    async fn written(self, store: Arc<SqliteStore>) -> Result<()> {
        let open = Arc::new(self);
        let mut under_way = JoinSet::new();
        for kind in 0..open.kinds.len() {
            let count = open.kinds[kind].1;
            for first in (0..count).step_by(JOBS_PER_COMMIT) {
                if under_way.len() >= AT_A_TIME
                    && let Some(one) = under_way.join_next().await
                {
                    one??;
                }
                let (open, store) = (open.clone(), store.clone());
                let jobs = JOBS_PER_COMMIT.min(count - first);
                under_way.spawn(async move {
                    store.commit(open.commit(&open.kinds[kind].0, jobs)?).await?;
                    anyhow::Ok(())
                });
            }
        }
        while let Some(one) = under_way.join_next().await {
            one??;
        }
        Ok(())
    }

    fn commit(&self, kind: &str, jobs: usize) -> Result<Commit> {
        let mut changes = Vec::with_capacity(2 * jobs);
        for _ in 0..jobs {
            changes.extend(self.job_and_operation(kind)?);
        }
        Ok(commit(self.at, changes))
    }

    fn job_and_operation(&self, kind: &str) -> Result<[Change; 2]> {
        let (job_id, attempt_id) = (RandomIds.job_id(), RandomIds.attempt_id());
        let digest = sha256(attempt_id.as_str().as_bytes());
        let operation_id = OperationId::new(format!("op-{}", &digest.to_string()[..32]));
        let input = body_ref(BodyName::Input, INPUT);
        let retry = RetryPolicy { max_attempts: 3, backoff_seconds: 1, max_backoff_seconds: 60 };
        let spec = JobSpec { title: "render the cover".to_owned(), ..JobSpec::plain(Some(kind), retry) };
        let owner = OwnerId::new("node-bench-boot-1");
        let handle = self.handle(&operation_id);
        let intent = Intent {
            operation_id: operation_id.clone(),
            kind: kind.to_owned(),
            specialist: kind.to_owned(),
            request: digest,
            resubmit: Resubmit::SameKey,
            not_cancelable: None,
        };
        let dispatch = Dispatch {
            attempt_id: attempt_id.clone(),
            owner,
            trigger: Trigger::Automatic,
            holder: Holder::Daemon,
        };
        let operation = self.operation(kind, &job_id, &attempt_id, &handle);
        let commands = [
            JobCommand::Create(Box::new(NewJob { spec, due_at: None, bodies: vec![input] })),
            JobCommand::Dispatch(dispatch),
            JobCommand::IntendSubmit { attempt_id: attempt_id.clone(), intent: Box::new(intent) },
            JobCommand::Defer {
                attempt_id,
                operation_id,
                operation: Box::new(operation),
                then: AfterExternal::Finish,
                left_by: domain::job::LeftBy::Executor,
            },
        ];
        let input = NewBody { body: input, bytes: Arc::from(INPUT) };
        let (job, mut follows) =
            change(self.at, job_id.into(), commands.map(Command::Job).into(), vec![input])?;
        let Some(Consequence { record, command }) = follows.pop() else { bail!("nothing was left outside") };
        let (operation, _) = change(self.at, record, vec![command], vec![handle])?;
        Ok([job, operation])
    }

    /// As the http executor keeps it.
    fn handle(&self, operation_id: &OperationId) -> NewBody {
        let base = format!("http://{}/work", self.service);
        let handle =
            json!({ "key": operation_id.as_str(), "base": base, "remote_id": operation_id.as_str() });
        let bytes = handle.to_string().into_bytes();
        NewBody { body: body_ref(BodyName::Handle, &bytes), bytes: bytes.into() }
    }

    fn operation(
        &self,
        kind: &str,
        job_id: &JobId,
        attempt_id: &domain::AttemptId,
        handle: &NewBody,
    ) -> NewOperation {
        let policy = KindPolicy {
            max_ttl_seconds: TTL_SECONDS,
            max_retry_after_seconds: domain::policy::RETRY_AFTER_CEILING_SECONDS,
            jitter_permille: 1_000,
            max_concurrent_polls_per_module: self.at_once.per_service,
            ..KindPolicy::default()
        };
        NewOperation {
            job_id: job_id.clone(),
            attempt_id: attempt_id.clone(),
            circle: None,
            kind: kind.to_owned(),
            specialist: kind.to_owned(),
            handle: Some(handle.body),
            cancelability: Cancelability::Cancelable,
            retry_after: Hint::Seconds(i64::from(self.due_after_seconds)),
            fail_after: Hint::Absent,
            action_ttl: Hint::Absent,
            deadline_at: None,
            progress_hint: Some("in the queue".to_owned()),
            policy,
            ttl_limit: None,
            external_job_id: None,
            jitter: RandomIds.jitter(),
        }
    }
}
