//! Plans: a store that was empty when its statements were planned is still written to through its indexes when it has grown.

use std::time::Duration;

use domain::timeline::{Anchor, Step};
use store::{Lane, Store};

use super::database::{Database, soon};
use crate::given::*;

const JOBS: i64 = 200;
/// Looks at a whole table that opening and migrating may take.
const MOST_LOOKS: i64 = 30;

#[tokio::test]
async fn step_of_the_clock_moves_leases_without_a_look_at_the_agenda() {
    const STEPS: u64 = 60;
    let database = Database::missing().await;
    let store = database.open().await;
    write(&store, &job("held"), vec![created()], at(0)).await;
    let held = taken(&store, &job("held"), "node-a", at(0)).await;
    let raw = database.raw().await;
    let parked = "INSERT INTO agenda (record_id, kind, version, checksum, held, ready, due_at) \
                  SELECT 'op-' || n, 'operation', 1, '', 0, 0, 1000000000000 + n FROM generate_series(1, 20000) AS n; \
                  ANALYZE agenda";
    raw.batch_execute(parked).await.unwrap();
    let anchor = Anchor { boot: 7, offset_micros: 0, ahead_at_start: false };
    for number in 0..STEPS {
        let step = Step { from: at(number * 100), to: at(number * 100 + 100) };
        store.keep_clock(anchor, Some(step.into())).await.unwrap();
    }
    let claim = store.load(&job("held")).await.unwrap().unwrap().claim.unwrap();
    assert_eq!(claim.lease_expires_at, held.claim.lease_expires_at.plus_seconds(STEPS * 100));
    // What a session has counted is told at the latest when it ends.
    store.close().await;
    let counted =
        "SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'agenda'";
    let looks = soon(async {
        loop {
            let row = raw.query_one(counted, &[&database.schema.name()]).await.unwrap();
            if row.get::<_, Option<i64>>(1) >= i64::try_from(STEPS).ok() {
                return row.get::<_, i64>(0);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let looks = looks.await;
    assert!(looks < MOST_LOOKS, "the agenda was looked at as a whole {looks} times");
}

#[tokio::test]
async fn growing_store_is_written_to_without_a_look_at_whole_tables() {
    let database = Database::missing().await;
    let store = database.open().await;
    for number in 0..JOBS {
        let id = job(&number.to_string());
        write(&store, &id, vec![created()], at(0)).await;
        // Its limit is counted: of what is held, through the index.
        let lane = Lane { name: LANE, limit: Some(1) };
        assert_eq!(store.take_ready(lane, take("node-a", at(1), 10)).await.unwrap().len(), 1);
        write(&store, &id, vec![dispatched(1), completed()], at(1)).await;
    }
    assert_eq!(store.take_ready(LANE.into(), take("node-a", at(2), 10)).await, Ok(Vec::new()));
    // What a session has counted is told at the latest when it ends.
    store.close().await;
    let raw = database.raw().await;
    let counted = "SELECT relname::text, seq_scan, n_tup_ins FROM pg_stat_user_tables \
                   WHERE schemaname = $1 AND relname IN ('agenda', 'jobs')";
    let looks = soon(async {
        loop {
            let rows = raw.query(counted, &[&database.schema.name()]).await.unwrap();
            if rows.len() == 2 && rows.iter().all(|row| row.get::<_, i64>(2) == JOBS) {
                return rows.iter().map(|row| (row.get(0), row.get(1))).collect::<Vec<(String, i64)>>();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    for (table, looks) in looks.await {
        assert!(looks < MOST_LOOKS, "{table} was looked at as a whole {looks} times");
    }
}
