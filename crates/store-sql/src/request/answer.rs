//! Reads: one arm each, for both databases. The few that a database answers in its own way, it answers before.

use store::{ReadAnswer, ReadRequest, StoreError};

use crate::database::Database;
use crate::{asks, clock, keys, lists, nodes, operations, peers, plugin_state, reads, records, tokens};

/// Answers a request from what is committed.
pub(crate) async fn answer<D: Database>(
    database: &D,
    request: &ReadRequest,
) -> Result<ReadAnswer, StoreError> {
    Ok(match request {
        ReadRequest::Load { id } => ReadAnswer::Load(reads::load(database, id).await?),
        ReadRequest::Body { id, body } => ReadAnswer::Body(reads::body(database, id, *body).await?),
        ReadRequest::Key { key } => ReadAnswer::Key(keys::key(database, key).await?),
        ReadRequest::Jobs { query } => ReadAnswer::Jobs(lists::jobs(database, query).await?),
        ReadRequest::OperationsOf { job, limit } => {
            ReadAnswer::OperationsOf(operations::of_job(database, job, *limit).await?)
        }
        ReadRequest::JobsKnownAs { external_job_id, query } => {
            ReadAnswer::JobsKnownAs(lists::known_as(database, external_job_id, query).await?)
        }
        ReadRequest::Orphans { after, limit } => {
            ReadAnswer::Orphans(operations::orphans(database, after.as_ref(), *limit).await?)
        }
        ReadRequest::OrphanCount {} => ReadAnswer::OrphanCount(operations::orphan_count(database).await?),
        ReadRequest::Records { query } => ReadAnswer::Records(records::page(database, query).await?),
        ReadRequest::NewestRecord { kind, name, key } => {
            ReadAnswer::NewestRecord(records::newest(database, *kind, name, key).await?)
        }
        ReadRequest::FactsOf { id, after_version, limit } => {
            ReadAnswer::FactsOf(reads::facts_of(database, id, *after_version, *limit).await?)
        }
        ReadRequest::FactsAfter { position, limit } => {
            ReadAnswer::FactsAfter(reads::facts_after(database, *position, *limit).await?)
        }
        ReadRequest::ReadyLanes {} => ReadAnswer::ReadyLanes(reads::ready_lanes(database).await?),
        ReadRequest::EarliestDue { kind } => {
            ReadAnswer::EarliestDue(reads::earliest_due(database, *kind).await?)
        }
        ReadRequest::DueBetween { kind, after, until, limit } => {
            ReadAnswer::DueBetween(clock::due_between(database, *kind, after, *until, *limit).await?)
        }
        ReadRequest::Token { sha256 } => ReadAnswer::Token(tokens::token(database, *sha256).await?),
        ReadRequest::Tokens {} => ReadAnswer::Tokens(tokens::tokens(database).await?),
        ReadRequest::Nodes {} => ReadAnswer::Nodes(nodes::nodes(database).await?),
        ReadRequest::Peer { key } => ReadAnswer::Peer(peers::peer(database, key).await?),
        ReadRequest::Peers { query } => ReadAnswer::Peers(peers::peers(database, query).await?),
        ReadRequest::Ask { id } => ReadAnswer::Ask(asks::ask(database, id).await?),
        ReadRequest::Asks { query } => ReadAnswer::Asks(asks::asks(database, query).await?),
        ReadRequest::PluginState { plugin } => {
            ReadAnswer::PluginState(plugin_state::state(database, plugin).await?)
        }
        ReadRequest::PluginFacts { plugin, after, limit } => {
            ReadAnswer::PluginFacts(plugin_state::facts(database, plugin, *after, *limit).await?)
        }
        ReadRequest::Clock {} => ReadAnswer::Clock(clock::clock(database).await.map_err(D::read_failed)?),
        // A file is counted once and a server keeps counts; only a server has nodes that see its clock.
        ReadRequest::JobCounts {} | ReadRequest::OpenJobs { .. } | ReadRequest::Sights {} => {
            return Err(StoreError::Broken("each database answers this in its own way".to_owned()));
        }
    })
}
