//! Nodes: written down, ordered about and removed through the writer, read beside it. No fact is ever written here.

use domain::Timestamp;
use store::{MAX_NODES, Node, StoreError, Taking};

use crate::database::{Columns, Database, Given, Unfit, integer, text, unsigned};
use crate::dialect::Sql;
use crate::rows::{signed, time};

static KEEP_NODE: Sql = Sql::new(
    "INSERT INTO nodes (id, name, url, version, schema_version, executors, started_at, attempts, polls, heartbeat_at, drains) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0) ON CONFLICT (id) DO UPDATE \
     SET heartbeat_at = excluded.heartbeat_at, attempts = excluded.attempts, polls = excluded.polls",
);
static FORGET_NODES: Sql = Sql::new("DELETE FROM nodes WHERE heartbeat_at < $1 AND id <> $2");
static REMOVE_NODE: Sql = Sql::new("DELETE FROM nodes WHERE id = $1");

pub(crate) async fn keep<D: Database>(
    database: &D,
    node: &Node,
    forget_before: Timestamp,
) -> Result<(), D::Error> {
    let executors = node.encode_executors();
    let given = [&values(node, &executors)[..], &[node.heartbeat_at.micros().into()]].concat();
    database.execute(&KEEP_NODE, &given).await?;
    database.execute(&FORGET_NODES, &[forget_before.micros().into(), node.id.as_str().into()]).await?;
    Ok(())
}

pub(crate) async fn remove<D: Database>(database: &D, id: &str) -> Result<(), D::Error> {
    database.execute(&REMOVE_NODE, &[id.into()]).await?;
    Ok(())
}

/// What a node says of itself, in this order; when it was heard of is said by whoever writes it down.
pub(crate) fn values<'a>(node: &'a Node, executors: &'a str) -> [Given<'a>; 9] {
    [
        node.id.as_str().into(),
        node.name.as_str().into(),
        node.url.as_str().into(),
        node.version.as_str().into(),
        node.schema_version.into(),
        executors.into(),
        node.started_at.micros().into(),
        signed(node.attempts).into(),
        signed(node.polls).into(),
    ]
}

static TELL_NODE: Sql = Sql::new("UPDATE nodes SET drains = $2 WHERE id = $1");

pub(crate) async fn tell<D: Database>(database: &D, id: &str, taking: Taking) -> Result<bool, D::Error> {
    let drains = taking == Taking::Drains;
    Ok(database.execute(&TELL_NODE, &[id.into(), drains.into()]).await? > 0)
}

static NODES: Sql = Sql::new(
    "SELECT id, name, url, version, schema_version, executors, started_at, heartbeat_at, attempts, polls, drains FROM nodes \
     ORDER BY started_at DESC, id LIMIT $1",
);

pub(crate) async fn nodes<D: Database>(database: &D) -> Result<Vec<Node>, StoreError> {
    let most = signed(MAX_NODES as u64);
    database.query(&NODES, &[most.into()], read_node).await.map_err(D::read_failed)
}

fn read_node(row: &dyn Columns) -> Result<Node, Unfit> {
    Ok(Node {
        id: text(row, 0)?,
        name: text(row, 1)?,
        url: text(row, 2)?,
        version: text(row, 3)?,
        schema_version: integer(row, 4)?,
        executors: Node::decode_executors(&text(row, 5)?),
        started_at: time(row, 6)?,
        heartbeat_at: time(row, 7)?,
        attempts: unsigned(row, 8)?,
        polls: unsigned(row, 9)?,
        taking: taking(integer(row, 10)?),
    })
}

/// What the column `drains` says.
pub(crate) fn taking(drains: i64) -> Taking {
    if drains == 0 { Taking::Takes } else { Taking::Drains }
}
