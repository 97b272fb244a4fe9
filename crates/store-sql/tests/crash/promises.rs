//! What an acknowledgement promises, and whether a store keeps it.

use std::collections::{BTreeMap, BTreeSet};

use domain::{BodyRef, RecordId};
use store::{IdempotencyKey, Store, StoreError, body_ref};

/// What was promised with an acknowledgement.
#[derive(Clone, Debug)]
pub enum Promise {
    /// The record stands at this version, or a later one.
    Version(RecordId, u64),
    /// Its claim has this version, or a later one.
    Claim(RecordId, u64),
    /// A body of it.
    Body(RecordId, BodyRef),
    /// The answer under a key.
    Key(RecordId, IdempotencyKey),
    /// It is gone for good.
    Gone(RecordId),
}

impl Promise {
    pub fn record(&self) -> &RecordId {
        match self {
            Self::Version(id, _)
            | Self::Claim(id, _)
            | Self::Body(id, _)
            | Self::Key(id, _)
            | Self::Gone(id) => id,
        }
    }
}

/// The first promise that the store does not keep, if there is one.
pub async fn broken_promise<'a>(
    store: &dyn Store,
    promises: impl IntoIterator<Item = &'a Promise>,
) -> Result<Option<&'a Promise>, StoreError> {
    let promises: Vec<&Promise> = promises.into_iter().collect();
    // All is asked for at once, each record once: an image is looked at in a few milliseconds.
    let records: BTreeSet<&RecordId> = promises.iter().map(|promise| promise.record()).collect();
    let loads: Vec<_> = records.into_iter().map(|id| (id, store.load(id))).collect();
    let others: Vec<_> = promises
        .iter()
        .filter_map(|promise| match promise {
            Promise::Body(id, body) => Some((*promise, Other::Body(*body, store.body(id, *body)))),
            Promise::Key(_, key) => Some((*promise, Other::Key(store.key(key)))),
            Promise::Version(..) | Promise::Claim(..) | Promise::Gone(_) => None,
        })
        .collect();
    let mut loaded = BTreeMap::new();
    for (id, load) in loads {
        loaded.insert(id, load.await?);
    }
    for promise in promises {
        let there = loaded[promise.record()].as_ref();
        let kept = match promise {
            Promise::Version(_, version) => there.is_some_and(|loaded| loaded.head.version >= *version),
            Promise::Claim(_, version) => there
                .and_then(|loaded| loaded.claim.as_ref())
                .is_some_and(|claim| claim.claim_version >= *version),
            Promise::Gone(_) => there.is_none(),
            Promise::Body(..) | Promise::Key(..) => true,
        };
        if !kept {
            return Ok(Some(promise));
        }
    }
    for (promise, other) in others {
        let kept = match other {
            Other::Body(body, bytes) => bytes.await?.is_some_and(|bytes| body_ref(body.name, &bytes) == body),
            Other::Key(key) => key.await?.is_some(),
        };
        if !kept {
            return Ok(Some(promise));
        }
    }
    Ok(None)
}

/// An answer under way.
enum Other<'a> {
    Body(BodyRef, store::Reply<'a, Option<Vec<u8>>>),
    Key(store::Reply<'a, Option<store::KeptKey>>),
}
