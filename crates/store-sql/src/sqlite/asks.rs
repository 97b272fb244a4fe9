//! The asks on a file: writes go through the writer, reads beside it.

use domain::ask::{Ask, AskChange, Closing};
use store::{AskQuery, AskStore, Reply, Urgency, check_ask};

use super::SqliteStore;
use crate::asks;
use crate::database::at_once;
use crate::request::{Answer, AskRequest, Request};

impl AskStore for SqliteStore {
    fn keep_ask(&self, ask: Ask, replied: Option<Closing>) -> Reply<'_, bool> {
        let ask = Box::new(ask);
        let checked = check_ask(&AskChange::Opened(ask.clone()));
        let request = checked.map(|()| Request::Ask(AskRequest::Keep { ask, replied }));
        self.write(request, Urgency::NewWork, Answer::known)
    }

    fn ask<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Ask>> {
        let id = id.to_owned();
        self.readers.read(move |connection| at_once(asks::ask(connection, &id)))
    }

    fn asks(&self, query: AskQuery) -> Reply<'_, Vec<Ask>> {
        self.readers.read(move |connection| at_once(asks::asks(connection, &query)))
    }

    fn close_ask<'a>(&'a self, id: &'a str, closing: Closing) -> Reply<'a, bool> {
        let checked = check_ask(&AskChange::Closed { id: id.to_owned(), closing: closing.clone() });
        let request = checked.map(|()| Request::Ask(AskRequest::Close { id: id.to_owned(), closing }));
        self.write(request, Urgency::Result, Answer::known)
    }
}
