//! Writes that can be repeated: the answer is rendered once, stored with the commit, and sent byte for byte from then on.

use std::sync::{Arc, Mutex};

use domain::{Digest, Record, Timestamp};
use engine::{EngineError, Order, OrderKey};
use store::{IdempotencyKey, KeptKey, Store};

use crate::access::authenticate::Principal;
use crate::problem::{key_reused, of_engine, of_store};
use crate::reply::{Given, Reply};
use crate::{RequestContext, Result, Server};

/// Keys are kept at least this long: a day. The store keeps them as long as their record, if that is longer.
const KEPT_SECONDS: u64 = 86_400;

/// One write under a key.
pub(crate) struct Keyed {
    key: IdempotencyKey,
    request_sha256: Digest,
    sent: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Keyed {
    /// This write of this caller. The request is its operation, its record and its compact body.
    pub(crate) fn new(principal: &Principal, route: &str, key: String, record: &str, body: &str) -> Self {
        let mut request = Vec::with_capacity(record.len() + body.len() + 1);
        request.extend_from_slice(record.as_bytes());
        request.push(0);
        request.extend_from_slice(body.as_bytes());
        let route = route.to_owned();
        Self {
            key: IdempotencyKey { principal: principal.token_id.to_string(), route, key },
            request_sha256: store::sha256(&request),
            sent: Arc::default(),
        }
    }

    /// The write of a request that names its key in the header, if it does.
    pub(crate) fn of(asked: &RequestContext, record: &str) -> Option<Self> {
        let (key, body) = (asked.key.clone()?, asked.body.as_deref().unwrap_or_default());
        Some(Self::new(&asked.principal, asked.operation.name, key, record, body))
    }

    /// What the order uses up. Whatever was rendered last is what was stored, and is what is sent.
    pub(crate) fn order_key(
        &self,
        now: Timestamp,
        render: impl Fn(&Record) -> Vec<u8> + Send + Sync + 'static,
    ) -> OrderKey {
        let sent = self.sent.clone();
        OrderKey {
            key: self.key.clone(),
            request_sha256: self.request_sha256,
            keep_until: now.plus_seconds(KEPT_SECONDS),
            render: Arc::new(move |record| {
                let bytes = render(record);
                *sent.lock().expect("no holder of the lock panics") = Some(bytes.clone());
                bytes
            }),
        }
    }

    /// What was stored by this write.
    pub(crate) fn sent(&self) -> Option<Vec<u8>> {
        self.sent.lock().expect("no holder of the lock panics").take()
    }

    /// The answer that was given under this key before, if it was used.
    pub(crate) async fn earlier(&self, store: &dyn Store) -> Result<Option<Reply>> {
        let kept = self.kept(store).await?;
        Ok(kept.map(|kept| Reply::rendered(kept.answer.to_vec(), Given::Before)))
    }

    /// What was kept under this key by the same request; a conflict if the request differs.
    pub(crate) async fn kept(&self, store: &dyn Store) -> Result<Option<KeptKey>> {
        let kept = store.key(&self.key).await.map_err(of_store)?;
        if let Some(kept) = &kept {
            self.kept_bytes(kept)?;
        }
        Ok(kept)
    }

    /// The kept answer to the same request; a conflict if the request differs.
    pub(crate) fn kept_bytes(&self, kept: &KeptKey) -> Result<Vec<u8>> {
        if kept.request_sha256 == self.request_sha256 { Ok(kept.answer.to_vec()) } else { Err(key_reused()) }
    }
}

/// Gives an order under its key, if it has one, and answers with what is rendered of the record.
pub(crate) async fn give(
    server: &Server,
    keyed: Option<&Keyed>,
    mut order: Order,
    id: &str,
    render: impl Fn(&Record) -> Vec<u8> + Clone + Send + Sync + 'static,
) -> Result<Reply> {
    order.keys.extend(keyed.map(|keyed| keyed.order_key(server.now(), render.clone())));
    match server.daemon.engine().execute(order).await {
        Ok(outcome) => {
            let sent = keyed.and_then(Keyed::sent).unwrap_or_else(|| render(outcome.record()));
            Ok(Reply::rendered(sent, Given::Now))
        }
        Err(error) => refused(keyed, &error, id),
    }
}

/// What an order that failed is answered with: the earlier answer, if its key was used.
pub(crate) fn refused(keyed: Option<&Keyed>, error: &EngineError, id: &str) -> Result<Reply> {
    match (error, keyed) {
        (EngineError::KeyTaken(kept), Some(keyed)) => {
            Ok(Reply::rendered(keyed.kept_bytes(kept)?, Given::Before))
        }
        _ => Err(of_engine(error, id)),
    }
}
