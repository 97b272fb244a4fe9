//! The asks of the model.

use domain::Timestamp;
use domain::ask::{Ask, AskChange, Closing, MAX_ASKS_LISTED, MAX_FORGOTTEN_ASKS, MAX_OPEN_ASKS};

use super::Tables;
use crate::asks::too_many_asks;
use crate::{AskQuery, Direction, StoreError};

/// An ask, and when it may be deleted.
#[derive(Clone, Debug)]
pub struct KeptAsk {
    /// The ask.
    pub ask: Ask,
    /// When it may be deleted.
    pub forget_at: Timestamp,
}

impl Tables {
    pub(super) fn asks(&self, query: &AskQuery) -> Vec<Ask> {
        let mut asks: Vec<Ask> =
            self.asks.values().map(|kept| &kept.ask).filter(|ask| query.fits(ask)).cloned().collect();
        asks.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        asks.truncate(query.limit().min(MAX_ASKS_LISTED));
        asks
    }

    pub(super) fn keep_ask(&mut self, ask: Ask, replied: Option<Closing>) -> Result<bool, StoreError> {
        if self.asks.contains_key(&ask.id) {
            return Ok(false);
        }
        let open = AskQuery::Open {
            peer: ask.to_peer.clone(),
            circle: ask.circle.clone(),
            direction: Direction::Inbound,
            now: ask.created_at,
            limit: MAX_OPEN_ASKS,
        };
        if self.asks.values().filter(|kept| open.fits(&kept.ask)).count() >= MAX_OPEN_ASKS {
            return Err(too_many_asks());
        }
        if let (Some(replied_to), Some(closing)) = (&ask.reply_to, replied) {
            self.close_ask(&replied_to.clone(), closing);
        }
        self.open_ask(ask);
        Ok(true)
    }

    pub(super) fn close_ask(&mut self, id: &str, closing: Closing) -> bool {
        let Some(kept) = self.asks.get_mut(id).filter(|kept| kept.ask.closed.is_none()) else { return false };
        kept.forget_at = closing.forget_at().unwrap_or(kept.forget_at);
        kept.ask.closed = Some(closing);
        true
    }

    /// Writes an ask that is not there yet, and makes room for it.
    fn open_ask(&mut self, ask: Ask) {
        let now = ask.created_at;
        let mut old: Vec<(Timestamp, String)> = self
            .asks
            .iter()
            .filter(|(_, kept)| kept.forget_at <= now)
            .map(|(id, kept)| (kept.forget_at, id.clone()))
            .collect();
        old.sort();
        for (_, id) in old.into_iter().take(MAX_FORGOTTEN_ASKS) {
            self.asks.remove(&id);
        }
        let forget_at = ask.forget_at();
        self.asks.entry(ask.id.clone()).or_insert(KeptAsk { ask, forget_at });
    }

    /// What a commit brings about.
    pub(super) fn change_asks(&mut self, changes: &[AskChange]) {
        for change in changes {
            match change {
                AskChange::Opened(ask) => self.open_ask((**ask).clone()),
                AskChange::Closed { id, closing } => {
                    self.close_ask(id, closing.clone());
                }
            }
        }
    }
}
