//! Plans: a store that was empty when its statements were planned is still written to through its indexes when it has grown.

use std::time::Duration;

use store::{Lane, Store};

use super::database::{Database, soon};
use crate::given::*;

const JOBS: i64 = 200;
/// Looks at a whole table that opening and migrating may take.
const MOST_LOOKS: i64 = 30;

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
