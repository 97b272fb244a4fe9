//! The asks on a database: writes go through the writer, reads beside it.

use domain::ask::{Ask, AskChange, Closing};
use store::{AskQuery, AskStore, Reply, Urgency, check_ask};

use super::PostgresStore;
use crate::asks;
use crate::request::{Answer, AskRequest, Request};

impl AskStore for PostgresStore {
    fn keep_ask(&self, ask: Ask, replied: Option<Closing>) -> Reply<'_, bool> {
        let ask = Box::new(ask);
        let checked = check_ask(&AskChange::Opened(ask.clone()));
        let request = checked.map(|()| Request::Ask(AskRequest::Keep { ask, replied }));
        self.write(request, Urgency::NewWork, Answer::known)
    }

    fn ask<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Ask>> {
        Box::pin(self.pool.read(move |session| async move { asks::ask(&*session, id).await }))
    }

    fn asks(&self, query: AskQuery) -> Reply<'_, Vec<Ask>> {
        let query = std::sync::Arc::new(query);
        Box::pin(self.pool.read(move |session| {
            let query = query.clone();
            async move { asks::asks(&*session, &query).await }
        }))
    }

    fn close_ask<'a>(&'a self, id: &'a str, closing: Closing) -> Reply<'a, bool> {
        let checked = check_ask(&AskChange::Closed { id: id.to_owned(), closing: closing.clone() });
        let request = checked.map(|()| Request::Ask(AskRequest::Close { id: id.to_owned(), closing }));
        self.write(request, Urgency::Result, Answer::known)
    }
}
