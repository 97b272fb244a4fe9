//! Work outside as people query it: a view with typed columns, and indexes behind what is asked of it.

use domain::BodyName;
use store::body_ref;

use super::database::Database;
use crate::given::*;

// conforms: L31 L41 L42 L70 L71 L93 L95
#[tokio::test]
async fn productions_are_a_view_with_typed_columns() {
    let database = Database::lived_in().await;
    let store = database.open().await;
    write(&store, &operation("seen"), vec![known_as("r-7", &job("x"), at(9)), polled(at(40))], at(10)).await;
    write(&store, &operation("over"), vec![known_as("r-8", &job("y"), at(9))], at(10)).await;
    write(&store, &operation("over"), vec![failed_outside()], at(20)).await;
    write(&store, &operation("done"), vec![known_as("r-6", &job("z"), at(9))], at(10)).await;
    let data = body_ref(BodyName::Result, b"12");
    write(&store, &operation("done"), vec![resolved_with(data)], at(21)).await;
    write(&store, &operation("bare"), vec![known_as("r-5", &job("w"), at(9))], at(10)).await;
    write(&store, &operation("bare"), vec![resolved()], at(22)).await;
    let raw = database.raw().await;
    let seen = "SELECT concat_ws(' ', render_job_id, declared_render_type_ref, specialist_ref, external_job_id, polling_interval_seconds, \
         progress_hint, last_polled_at, completed_at IS NULL, pg_typeof(polling_interval_seconds), pg_typeof(dispatched_at), \
         pg_typeof(last_polled_at), pg_typeof(completed_at), pg_typeof(next_poll_at)) \
         FROM external_production_records_view WHERE object_id = 'op-seen'";
    let row: String = raw.query_one(seen, &[]).await.unwrap().get(0);
    let expected = "t bigint bigint bigint bigint bigint";
    assert_eq!(row, format!("work-x render render-farm r-7 30 page 2 {} {expected}", at(10).micros()));
    let over = "SELECT concat_ws(' ', completed_at, failure_detail, error_code, render_event_object_id) \
         FROM external_production_records_view WHERE object_id = 'op-over'";
    let row: String = raw.query_one(over, &[]).await.unwrap().get(0);
    assert_eq!(row, format!("{} out of paper no_paper", at(20).micros()));
    let done = "SELECT concat_ws(' ', pg_typeof(render_event_object_id), render_event_object_id, completed_at, \
         last_polled_at, failure_detail IS NULL, error_code IS NULL) \
         FROM external_production_records_view WHERE object_id = 'op-done'";
    let row: String = raw.query_one(done, &[]).await.unwrap().get(0);
    assert_eq!(row, format!("text sha256:{1} {0} {0} t t", at(21).micros(), data.sha256));
    let bare = "SELECT concat_ws(' ', render_event_object_id IS NULL, completed_at) FROM external_production_records_view \
         WHERE object_id = 'op-bare'";
    let row: String = raw.query_one(bare, &[]).await.unwrap().get(0);
    assert_eq!(row, format!("t {}", at(22).micros()), "there is no data");
    store.close().await;
}

// conforms: L70 L93
#[tokio::test]
async fn unresolved_and_named_productions_come_through_an_index() {
    let database = Database::lived_in().await;
    let raw = database.raw().await;
    // A table of a few rows is read whole: what is asked is whether the index could be used.
    raw.batch_execute("SET enable_seqscan = off").await.unwrap();
    for (condition, index) in [
        ("completed_at IS NULL", "operations_unresolved"),
        ("external_job_id = 'r-7'", "operations_by_external_job_id"),
    ] {
        let query = format!("EXPLAIN SELECT * FROM external_production_records_view WHERE {condition}");
        let lines = raw.query(&query, &[]).await.unwrap();
        let plan: Vec<String> = lines.iter().map(|row| row.get(0)).collect();
        assert!(plan.join("\n").contains(index), "{plan:?}");
    }
}
