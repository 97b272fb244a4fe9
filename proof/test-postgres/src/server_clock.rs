//! The clock of a server as a test sets it: a schema with a `clock_timestamp()` of its own, which a connection finds before the server's.

use tokio_postgres::Client;

use crate::Schema;

/// The clock of the server, as whoever connects to its address sees it. Others on the same server see nothing of it.
pub struct ServerClock {
    name: String,
    /// The address of the store in the schema, with this clock.
    pub address: String,
}

impl ServerClock {
    /// Stands until it is set, at so many seconds of the epoch.
    pub async fn standing(schema: &Schema, seconds: i64) -> Self {
        Self::make(schema, "to_timestamp(0)", seconds).await
    }

    /// Goes as the server's own does, and may be set.
    pub async fn going(schema: &Schema) -> Self {
        Self::make(schema, "pg_catalog.clock_timestamp()", 0).await
    }

    async fn make(schema: &Schema, from: &str, seconds: i64) -> Self {
        let name = format!("{}_time", schema.name());
        let path = format!("search_path%3D{}", schema.name());
        assert!(schema.address.contains(&path), "{}", schema.address);
        // Before the server's own functions.
        let address = schema.address.replace(&path, &format!("{path}%2C{name}%2Cpg_catalog"));
        let clock = Self { name, address };
        let name = &clock.name;
        let make = format!(
            "CREATE SCHEMA {name}; CREATE TABLE {name}.ahead (micros BIGINT NOT NULL); \
             INSERT INTO {name}.ahead VALUES ({seconds} * 1000000::bigint); \
             CREATE FUNCTION {name}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS \
             'SELECT {from} + micros * interval ''1 microsecond'' FROM {name}.ahead'"
        );
        schema.client().await.batch_execute(&make).await.expect("a clock can be made");
        clock
    }

    /// Sets it by so much, ahead or back.
    pub async fn set(&self, by: &Client, seconds: i64) {
        let name = &self.name;
        let set = format!("UPDATE {name}.ahead SET micros = micros + {seconds} * 1000000::bigint");
        by.batch_execute(&set).await.expect("it can be set");
    }
}
