//! A life on a disk: about sixty acknowledged steps, checkpoints in between, and the close at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use crash_vfs::{Disk, OperationLog};
use domain::{JobId, RecordId};
use engine::EngineError;
use store_sql::Durability;

use crate::on_disk;
use crate::promises::Promise;
use crate::workshop::Workshop;

const JOBS: usize = 18;
/// So that the log is moved into the file, and begun anew, while work goes on.
const JOBS_PER_CHECKPOINT: usize = 4;

/// What was done to the disk, and what was promised when.
pub struct Life {
    pub log: OperationLog,
    /// In the order of time: how many operations the disk had recorded when it was acknowledged.
    pub promises: Vec<(usize, Promise)>,
    /// From when on a record may be gone, because its retirement had been ordered.
    pub may_be_gone: BTreeMap<RecordId, usize>,
    pub acknowledgements: usize,
}

struct Recorder {
    disk: Disk,
    promises: Vec<(usize, Promise)>,
    may_be_gone: BTreeMap<RecordId, usize>,
    acknowledgements: usize,
}

impl Recorder {
    fn acknowledged(&mut self, promises: Vec<Promise>) {
        self.acknowledgements += 1;
        let at = self.disk.operations();
        self.promises.extend(promises.into_iter().map(|promise| (at, promise)));
    }

    fn retiring(&mut self, id: &JobId) {
        self.may_be_gone.insert(id.clone().into(), self.disk.operations());
    }
}

pub async fn live(durability: Durability) -> Life {
    let disk = Disk::new();
    let store = Arc::new(on_disk::open(&disk, durability).unwrap());
    let checkpointer = on_disk::connect(&disk).unwrap();
    let workshop = Workshop::on(store.clone(), store.newest_fact());
    let mut recorder = Recorder {
        disk: disk.clone(),
        promises: Vec::new(),
        may_be_gone: BTreeMap::new(),
        acknowledgements: 0,
    };
    let mut ended = Vec::new();
    for number in 0..JOBS {
        let id = one_job(&workshop, &mut recorder, number).await.unwrap();
        ended.push(id);
        if number % JOBS_PER_CHECKPOINT == JOBS_PER_CHECKPOINT - 1 {
            let retired: JobId = ended.remove(0);
            recorder.retiring(&retired);
            recorder.acknowledged(workshop.retire(&retired).await.unwrap());
            let how = if number < JOBS / 2 { "PASSIVE" } else { "RESTART" };
            let busy: i64 = checkpointer
                .query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |row| row.get(0))
                .unwrap();
            assert_eq!(busy, 0);
        }
    }
    drop(workshop);
    drop(store);
    drop(checkpointer);
    let Recorder { disk, promises, may_be_gone, acknowledgements } = recorder;
    Life { log: disk.log(), promises, may_be_gone, acknowledgements }
}

async fn one_job(workshop: &Workshop, recorder: &mut Recorder, number: usize) -> Result<JobId, EngineError> {
    // Now and then a body over several pages.
    let (id, promises) = workshop.create(if number % 5 == 4 { 20_000 } else { 300 }).await?;
    recorder.acknowledged(promises);
    let fence = if number.is_multiple_of(2) {
        let (fence, mut promises) = workshop.claim_until_next_commit(&id).await?;
        promises.extend(workshop.dispatch(&id, &fence).await?);
        recorder.acknowledged(promises);
        fence
    } else {
        let (fence, promises) = workshop.claim(&id).await?;
        recorder.acknowledged(promises);
        recorder.acknowledged(workshop.dispatch(&id, &fence).await?);
        fence
    };
    if number % 3 == 2 {
        recorder.acknowledged(workshop.defer(&id, &fence).await?);
        recorder.acknowledged(workshop.resolve(&id).await?);
    } else {
        recorder.acknowledged(workshop.complete(&id, &fence).await?);
    }
    Ok(id)
}

impl Life {
    /// What must hold after a crash before operation `at`.
    pub fn promised_by(&self, at: usize) -> impl Iterator<Item = &Promise> {
        let may_be_gone = move |promise: &Promise| {
            let gone_from = self.may_be_gone.get(promise.record());
            !matches!(promise, Promise::Gone(_)) && gone_from.is_some_and(|from| *from <= at)
        };
        let by_then = self.promises.iter().take_while(move |(when, _)| *when <= at);
        by_then.map(|(_, promise)| promise).filter(move |promise| !may_be_gone(promise))
    }

    /// How many promises had been made by then.
    pub fn count_by(&self, at: usize) -> usize {
        self.promises.partition_point(|(when, _)| *when <= at)
    }
}
