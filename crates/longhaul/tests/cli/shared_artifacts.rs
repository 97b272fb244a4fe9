//! What a command has said on one node, asked of another.

use test_postgres::Schema;

use crate::given::{Daemon, ended, expect, longhaul};
use crate::refused_databases::number;

#[test]
fn output_of_a_command_is_read_on_any_node_when_it_is_over_and_goes_with_a_purge() {
    let schema = tokio::runtime::Runtime::new().unwrap().block_on(Schema::new());
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let _first = Daemon::start_with(one.path(), &["--database", &schema.address]);
    let _second = Daemon::start_with(other.path(), &["--no-dispatch", "--database", &schema.address]);
    // More than two chunks.
    let script = "seq 1 100000; echo complained >&2";
    let id = expect(0, &longhaul(one.path(), &["run", "--detach", "--", "sh", "-c", script]));
    let id = id.trim();
    ended(one.path(), id, "completed");
    let here = expect(0, &longhaul(one.path(), &["jobs", "logs", id]));
    assert!(here.ends_with("\n100000\n") && here.len() > 500_000, "{} bytes", here.len());
    let there = expect(0, &longhaul(other.path(), &["jobs", "logs", id]));
    assert!(there == here, "{} of {} bytes were read on the other node", there.len(), here.len());
    assert_eq!(expect(0, &longhaul(other.path(), &["jobs", "logs", "--stderr", id])), "complained\n");
    expect(0, &longhaul(other.path(), &["purge", id]));
    assert_eq!(expect(0, &longhaul(other.path(), &["jobs", "logs", id])), "");
    assert_eq!(number(&schema.address, "SELECT count(*) FROM artifact_chunks"), 0);
}
