//! What plugins remember: a row each, and their facts by number. Written with the commit that ends a job of the plugin.

use std::collections::BTreeMap;

use store::limits::MAX_PAGE;
use store::{KEPT_PLUGIN_FACTS, KeptPluginFact, PluginFact, PluginState, PluginStateChange, StoreError};

use crate::database::{Database, one, text, unsigned};
use crate::dialect::Sql;
use crate::rows::signed;

static STATE: Sql = Sql::new("SELECT version, state, fact_count FROM plugin_state WHERE plugin = $1");

/// What a plugin remembers.
pub(crate) async fn state<D: Database>(
    database: &D,
    plugin: &str,
) -> Result<Option<PluginState>, StoreError> {
    row(database, plugin).await.map_err(D::read_failed)
}

async fn row<D: Database>(database: &D, plugin: &str) -> Result<Option<PluginState>, D::Error> {
    one(database, &STATE, &[plugin.into()], |row| {
        Ok(PluginState {
            plugin: plugin.to_owned(),
            version: unsigned(row, 0)?,
            state: text(row, 1)?.into(),
            fact_count: unsigned(row, 2)?,
        })
    })
    .await
}

static FACTS: Sql = Sql::new(
    "SELECT number, fact_type, json FROM plugin_facts WHERE plugin = $1 AND number > $2 ORDER BY number LIMIT $3",
);

/// The facts of a plugin after a number, oldest first.
pub(crate) async fn facts<D: Database>(
    database: &D,
    plugin: &str,
    after: u64,
    limit: usize,
) -> Result<Vec<KeptPluginFact>, StoreError> {
    let limit = signed(limit.min(MAX_PAGE) as u64);
    let given = [plugin.into(), signed(after).into(), limit.into()];
    database
        .query(&FACTS, &given, |row| {
            let fact = PluginFact { fact_type: text(row, 1)?, json: text(row, 2)?.into() };
            Ok(KeptPluginFact { number: unsigned(row, 0)?, fact })
        })
        .await
        .map_err(D::read_failed)
}

// On a server the rows are locked: whoever finds a version keeps it to the end of the transaction.
static VERSION: Sql = Sql::differing(
    "SELECT version FROM plugin_state WHERE plugin = $1",
    "SELECT version FROM plugin_state WHERE plugin = $1 FOR UPDATE",
);

/// The versions of all plugins that these change, read before anything is written.
pub(crate) async fn versions<'c, D: Database>(
    database: &D,
    changes: impl IntoIterator<Item = &'c PluginStateChange>,
) -> Result<BTreeMap<&'c str, u64>, D::Error> {
    let mut versions: BTreeMap<&str, u64> =
        changes.into_iter().map(|change| (change.plugin.as_str(), 0)).collect();
    // In one order for all: two nodes that change the same plugins wait for each other, and not in a circle.
    for (plugin, version) in &mut versions {
        let found = one(database, &VERSION, &[(*plugin).into()], |row| unsigned(row, 0)).await?;
        *version = found.unwrap_or_default();
    }
    Ok(versions)
}

/// Whether every new state was made from the version that is there.
pub(crate) fn fit(changes: &[PluginStateChange], versions: &BTreeMap<&str, u64>) -> bool {
    let version = |plugin: &str| versions.get(plugin).copied().unwrap_or_default();
    changes.iter().all(|change| version(&change.plugin) == change.expected_version)
}

// Two nodes may both have found none; the primary key picks one, and the other's batch is done again.
static INSERT_STATE: Sql =
    Sql::new("INSERT INTO plugin_state (plugin, version, state, fact_count) VALUES ($1, $2, $3, $4)");
static UPDATE_STATE: Sql =
    Sql::new("UPDATE plugin_state SET version = $2, state = $3, fact_count = $4 WHERE plugin = $1");
static INSERT_FACT: Sql =
    Sql::new("INSERT INTO plugin_facts (plugin, number, fact_type, json) VALUES ($1, $2, $3, $4)");
static FORGET_FACTS: Sql = Sql::new("DELETE FROM plugin_facts WHERE plugin = $1 AND number <= $2");

/// Writes what a commit brings about; `fit` has seen the versions.
pub(crate) async fn change<D: Database>(database: &D, changes: &[PluginStateChange]) -> Result<(), D::Error> {
    for change in changes {
        let plugin = change.plugin.as_str();
        let before = row(database, plugin).await?.map_or(0, |state| state.fact_count);
        let fact_count = before + change.facts.len() as u64;
        let row = [
            plugin.into(),
            signed(change.expected_version + 1).into(),
            (&*change.state).into(),
            signed(fact_count).into(),
        ];
        let statement = if change.expected_version == 0 { &INSERT_STATE } else { &UPDATE_STATE };
        database.execute(statement, &row).await?;
        for (number, fact) in (before + 1..).zip(&change.facts) {
            let row =
                [plugin.into(), signed(number).into(), fact.fact_type.as_str().into(), (&*fact.json).into()];
            database.execute(&INSERT_FACT, &row).await?;
        }
        if !change.facts.is_empty() && fact_count > KEPT_PLUGIN_FACTS {
            let oldest = signed(fact_count - KEPT_PLUGIN_FACTS);
            database.execute(&FORGET_FACTS, &[plugin.into(), oldest.into()]).await?;
        }
    }
    Ok(())
}
