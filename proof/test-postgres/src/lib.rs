//! A schema of its own for every test, in the PostgreSQL that `LONGHAUL_TEST_POSTGRES` names. For tests only.
//!
//! `scripts/test` starts a server for the time of a run and sets the variable. A test that finds none fails and says so: it is
//! never passed over in silence.

mod cluster;
mod server_clock;

use tokio_postgres::{Client, NoTls};

pub use cluster::Cluster;
pub use server_clock::ServerClock;

/// Where the server is: `postgres://…`, a user that may make schemas, users and databases.
pub const VARIABLE: &str = "LONGHAUL_TEST_POSTGRES";

/// The address of the server.
pub fn server() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "this test needs a PostgreSQL: set {VARIABLE}=postgres://user@127.0.0.1:port/database, or run scripts/test"
        )
    })
}

/// An empty schema.
pub struct Schema {
    name: String,
    /// The address of a store in it.
    pub address: String,
}

impl Schema {
    /// A new one.
    pub async fn new() -> Self {
        Self::on(&server()).await
    }

    /// A new one on another server.
    pub async fn on(server: &str) -> Self {
        let name = format!("test_{}", uuid::Uuid::now_v7().simple());
        let schema = Self { address: address_of(server, &name), name };
        let server = client(server).await;
        server.batch_execute(&format!("CREATE SCHEMA {}", schema.name)).await.expect("a schema can be made");
        schema
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A connection that knows nothing of the store's rules, but is held by its triggers.
    pub async fn client(&self) -> Client {
        client(&self.address).await
    }
}

/// The address of a schema on a server; its connections bear its name.
pub fn address_of(server: &str, schema: &str) -> String {
    let joint = if server.contains('?') { '&' } else { '?' };
    format!("{server}{joint}application_name={schema}&options=-c%20search_path%3D{schema}")
}

/// A connection to an address.
pub async fn client(address: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(address, NoTls).await.expect("the PostgreSQL of the tests answers");
    tokio::spawn(connection);
    client
}
