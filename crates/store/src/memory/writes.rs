//! Writes of the model beside the ledger: one arm each.

use super::Tables;
use crate::{SideWrite, StoreError};

impl Tables {
    /// Whether it had an effect.
    pub(super) fn write(&mut self, write: SideWrite) -> Result<bool, StoreError> {
        match write {
            SideWrite::KeepToken { token } => return self.keep_token(token).map(|()| true),
            SideWrite::RevokeToken { id, at } => return Ok(self.revoke_token(&id, at)),
            SideWrite::KeepNode { node, forget_before } => self.keep_node(node, forget_before),
            SideWrite::TellNode { id, taking } => return Ok(self.tell_node(&id, taking)),
            SideWrite::RemoveNode { id } => drop(self.nodes.remove(&id)),
            SideWrite::KeepPeer { peer } => return self.keep_peer(peer).map(|()| true),
            SideWrite::ForgetPeer { key, version } => return Ok(self.forget_peer(&key, version)),
            SideWrite::NoteSightings { sightings } => self.note_sightings(sightings),
            SideWrite::KeepAsk { ask, replied } => return self.keep_ask(ask, replied),
            SideWrite::CloseAsk { id, closing } => return Ok(self.close_ask(&id, closing)),
            SideWrite::KeepClock { anchor, adopted } => self.keep_clock(anchor, adopted),
            SideWrite::TimersMoved { step, passes_left } => self.timers_moved(step, passes_left),
        }
        Ok(true)
    }
}
