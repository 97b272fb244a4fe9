//! The limit of a lane holds for all nodes together.

use crate::cluster::{Database, Node};
use crate::given::{create, ended};

/// Whoever finds the place taken leaves a word; longer than nodes take to hear of each other.
const PRESS: &str = "mkdir $PLACE/taken || touch $PLACE/clash; sleep 0.2; rmdir $PLACE/taken";

#[test]
fn nodes_together_keep_to_the_limit_of_a_lane_and_use_what_becomes_free_anywhere() {
    let (database, place) = (Database::new(), tempfile::tempdir().expect("there is room"));
    let path = place.path().display();
    let config = format!(
        "lanes: {{ press: {{ limit: 1 }} }}\n\
         executors: [{{ name: press, kind: process, argv: [sh, -c, \"{PRESS}\"], concurrency: 4, \
         env: {{ allow: [PATH], set: {{ PLACE: \"{path}\" }} }} }}]\n"
    );
    let nodes: Vec<Node> = (0..3).map(|_| database.node_knowing(&config)).collect();
    let ids: Vec<String> = (0..24)
        .map(|number| create(nodes[number % nodes.len()].dir(), &["sheet", "--executor", "press"]))
        .collect();
    for id in &ids {
        ended(nodes[0].dir(), id, "completed");
    }
    assert!(!place.path().join("clash").exists(), "two were at the press");
    database.verify();
}
