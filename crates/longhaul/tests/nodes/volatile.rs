//! Work outside that does not outlive its daemon, where several nodes ask about it: it ends with the node that left it there.

use serde_json::json;
use slow_service::{Options, SlowService};
use tokio::runtime::Runtime;

use crate::cluster::Database;
use crate::given::{create, ended, expect, longhaul, until};

// conforms: O130
#[test]
fn volatile_work_ends_with_its_node_and_not_before() {
    let runtime = Runtime::new().unwrap();
    let service = runtime.block_on(SlowService::start(Options::default())).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let connector = dir.path().join("press.yaml");
    let recipe = include_str!("../../../../examples/connectors/slow-service.yaml");
    let recipe = recipe.replace("127.0.0.1:8099", service.url().strip_prefix("http://").unwrap());
    let policy =
        "policy: { persistence: volatile, default_retry_after_seconds: 1, max_retry_after_seconds: 1 }\n";
    std::fs::write(&connector, format!("{policy}{recipe}")).unwrap();
    let connector = connector.to_str().unwrap();

    let database = Database::new();
    let first = database.node_with(&["--connector", connector]);
    let second = database.node_with(&["--connector", connector, "--no-dispatch"]);
    let give = |seconds: u32| {
        let input = json!({ "seconds": seconds }).to_string();
        let id = create(first.dir(), &["print it", "--executor", "slow-service", "--input", &input]);
        until(first.dir(), &id, "awaiting_external");
        id
    };
    let (short, long) = (give(10), give(600));
    // From now on the other node alone asks about the work of this one.
    expect(0, &longhaul(first.dir(), &["nodes", "drain", &first.id()]));
    ended(second.dir(), &short, "completed");
    until(second.dir(), &long, "awaiting_external");
    first.daemon.kill();
    let result = ended(second.dir(), &long, "failed");
    assert_eq!(result["error"]["code"], "volatile_lost", "{result}");
    database.verify();
    runtime.block_on(service.stop());
}
