//! Writes beside the ledger: one arm each, for both databases. No fact is ever written here.

use store::{SideWrite, StoreError};

use crate::database::Database;
use crate::{asks, clock, nodes, peers, tokens};

/// Carries it out in the open transaction; whether it had an effect. The outer error is the database's, the inner one the answer.
pub(crate) async fn carry_out<D: Database>(
    database: &D,
    write: &SideWrite,
) -> Result<Result<bool, StoreError>, D::Error> {
    Ok(match write {
        SideWrite::KeepToken { token } => tokens::keep(database, token).await?.map(|()| true),
        SideWrite::RevokeToken { id, at } => Ok(tokens::revoke(database, id, *at).await?),
        SideWrite::KeepNode { node, forget_before } => {
            nodes::keep(database, node, *forget_before).await?;
            Ok(true)
        }
        SideWrite::TellNode { id, taking } => Ok(nodes::tell(database, id, *taking).await?),
        SideWrite::RemoveNode { id } => {
            nodes::remove(database, id).await?;
            Ok(true)
        }
        SideWrite::KeepPeer { peer } => peers::keep(database, peer).await?.map(|()| true),
        SideWrite::ForgetPeer { key, version } => Ok(peers::forget(database, key, *version).await?),
        SideWrite::NoteSightings { sightings } => {
            for sighting in sightings {
                peers::sight(database, sighting).await?;
            }
            Ok(true)
        }
        SideWrite::KeepAsk { ask, replied } => asks::keep(database, ask, replied.as_ref()).await?,
        SideWrite::CloseAsk { id, closing } => Ok(asks::close(database, id, closing).await?),
        SideWrite::KeepClock { anchor, adopted } => {
            clock::keep(database, *anchor, adopted.as_ref()).await?;
            Ok(true)
        }
        SideWrite::TimersMoved { step, passes_left } => {
            clock::timers_moved(database, *step, *passes_left).await?;
            Ok(true)
        }
    })
}
