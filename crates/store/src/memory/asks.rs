//! The asks of the model.

use domain::Timestamp;
use domain::ask::{Ask, AskChange, Closing, MAX_ASKS_LISTED, MAX_FORGOTTEN_ASKS, MAX_OPEN_ASKS};

use super::{MemoryStore, Tables, ready};
use crate::asks::{check_ask, too_many_asks};
use crate::{AskQuery, AskStore, Direction, Reply, StoreError};

/// An ask, and when it may be deleted.
#[derive(Clone, Debug)]
pub struct KeptAsk {
    /// The ask.
    pub ask: Ask,
    /// When it may be deleted.
    pub forget_at: Timestamp,
}

impl AskStore for MemoryStore {
    fn keep_ask(&self, ask: Ask, replied: Option<Closing>) -> Reply<'_, bool> {
        let checked = check_ask(&AskChange::Opened(Box::new(ask.clone())));
        ready(checked.and_then(|()| self.tables().keep_ask(ask, replied)))
    }

    fn ask<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Ask>> {
        ready(Ok(self.tables().asks.get(id).map(|kept| kept.ask.clone())))
    }

    fn asks(&self, query: AskQuery) -> Reply<'_, Vec<Ask>> {
        let tables = self.tables();
        let mut asks: Vec<Ask> =
            tables.asks.values().map(|kept| &kept.ask).filter(|ask| query.fits(ask)).cloned().collect();
        asks.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        asks.truncate(query.limit().min(MAX_ASKS_LISTED));
        ready(Ok(asks))
    }

    fn close_ask<'a>(&'a self, id: &'a str, closing: Closing) -> Reply<'a, bool> {
        let checked = check_ask(&AskChange::Closed { id: id.to_owned(), closing: closing.clone() });
        ready(checked.map(|()| self.tables().close_ask(id, closing)))
    }
}

impl Tables {
    fn keep_ask(&mut self, ask: Ask, replied: Option<Closing>) -> Result<bool, StoreError> {
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

    fn close_ask(&mut self, id: &str, closing: Closing) -> bool {
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
