//! Work outside as people query it: a view with typed columns, and indexes behind what is asked of it.

use domain::BodyName;
use rusqlite::Connection;
use store::body_ref;

use super::file::File;
use crate::given::*;

fn plan(raw: &Connection, query: &str) -> String {
    let mut statement = raw.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
    rows.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
}

// conforms: L31 L41 L42 L70 L71 L93 L95
#[tokio::test]
async fn productions_are_a_view_with_typed_columns() {
    let file = File::lived_in().await;
    let store = file.open();
    write(&store, &operation("seen"), vec![known_as("r-7", &job("x"), at(9)), polled(at(40))], at(10)).await;
    write(&store, &operation("over"), vec![known_as("r-8", &job("y"), at(9))], at(10)).await;
    write(&store, &operation("over"), vec![failed_outside()], at(20)).await;
    write(&store, &operation("done"), vec![known_as("r-6", &job("z"), at(9))], at(10)).await;
    let data = body_ref(BodyName::Result, b"12");
    write(&store, &operation("done"), vec![resolved_with(data)], at(21)).await;
    write(&store, &operation("bare"), vec![known_as("r-5", &job("w"), at(9))], at(10)).await;
    write(&store, &operation("bare"), vec![resolved()], at(22)).await;
    let raw = file.raw();
    let types = "SELECT object_id || ' ' || render_job_id || ' ' || declared_render_type_ref || ' ' || specialist_ref \
         || ' ' || external_job_id || ' ' || polling_interval_seconds || ' ' || progress_hint || ' ' || (last_polled_at > dispatched_at) \
         || ' ' || typeof(completed_at) || ' ' || typeof(next_poll_at) FROM external_production_records_view WHERE object_id = 'op-seen'";
    let row: String = raw.query_row(types, [], |row| row.get(0)).unwrap();
    assert_eq!(row, "op-seen work-x render render-farm r-7 30 page 2 0 null integer");
    let over = "SELECT completed_at || ' ' || failure_detail || ' ' || error_code || ' ' || typeof(render_event_object_id) \
         || ' ' || typeof(next_poll_at) FROM external_production_records_view WHERE object_id = 'op-over'";
    let row: String = raw.query_row(over, [], |row| row.get(0)).unwrap();
    assert_eq!(row, format!("{} out of paper no_paper null null", at(20).micros()));
    let done = "SELECT typeof(render_event_object_id) || ' ' || render_event_object_id || ' ' || completed_at \
         || ' ' || last_polled_at || ' ' || (failure_detail IS NULL) || ' ' || (error_code IS NULL) \
         FROM external_production_records_view WHERE object_id = 'op-done'";
    let row: String = raw.query_row(done, [], |row| row.get(0)).unwrap();
    assert_eq!(row, format!("text sha256:{1} {0} {0} 1 1", at(21).micros(), data.sha256));
    let bare = "SELECT typeof(render_event_object_id) || ' ' || completed_at FROM external_production_records_view \
         WHERE object_id = 'op-bare'";
    let row: String = raw.query_row(bare, [], |row| row.get(0)).unwrap();
    assert_eq!(row, format!("null {}", at(22).micros()), "there is no data");
}

// conforms: L70 L93
#[tokio::test]
async fn unresolved_and_named_productions_come_through_an_index() {
    let file = File::lived_in().await;
    let raw = file.raw();
    let unresolved = "SELECT * FROM external_production_records_view WHERE completed_at IS NULL";
    let plan_of = plan(&raw, unresolved);
    assert!(plan_of.contains("USING INDEX operations_unresolved"), "{plan_of}");
    let named = "SELECT object_id FROM external_production_records_view WHERE external_job_id = 'r-7'";
    let plan_of = plan(&raw, named);
    assert!(plan_of.contains("operations_by_external_job_id"), "{plan_of}");
}
