//! The gate: who asks. A bearer token is looked up by its digest; a small cache spares the store and is emptied by every revocation.
//! Where other nodes may revoke too, what is remembered is soon forgotten.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use api::{ProblemCode, Role};
use domain::{AttemptId, Digest, JobId};
use engine::DOER;
use store::{Store, Token};

use crate::Result;
use crate::access::secret::Secret;
use crate::problem::of_store;

/// Tokens that are remembered; more empty the cache.
const REMEMBERED: usize = 1_024;

/// Who asks, and what their token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The token's id.
    pub token_id: Arc<str>,
    /// What it may do.
    pub role: Role,
    /// What it may do besides.
    pub scopes: Vec<String>,
    /// The only circle that it sees.
    pub circle: Option<String>,
    /// The peer that it speaks for.
    pub peer_id: Option<String>,
    /// Who stands in the facts: the peer, or the token; never the secret.
    pub actor: Arc<str>,
    /// The only job that it sees, if it is for one attempt.
    pub only: Option<JobId>,
    sha256: Digest,
}

/// How old the knowledge of a token may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// As old as the cache allows.
    Cached,
    /// As it is in the store now: another node may have revoked it.
    Now,
}

pub(crate) struct Gate {
    remembered: Mutex<Remembered>,
    remembered_for: Option<Duration>,
}

#[derive(Default)]
struct Remembered {
    by_digest: HashMap<Digest, (Instant, Arc<Principal>)>,
    /// Rises with every revocation: what was read before one is not remembered after it.
    revocations: u64,
}

impl Gate {
    /// A gate that remembers tokens for so long, or for good.
    pub(crate) fn remembering(remembered_for: Option<Duration>) -> Self {
        Self { remembered: Mutex::default(), remembered_for }
    }

    /// Who shows this token.
    pub(crate) async fn principal(&self, store: &dyn Store, token: &str) -> Result<Arc<Principal>> {
        self.holder(store, Secret::from_text(token).sha256()).await
    }

    /// Whether a principal that was admitted before still is.
    pub(crate) async fn still_admits(
        &self,
        store: &dyn Store,
        principal: &Principal,
        freshness: Freshness,
    ) -> Result<bool> {
        // Where only this process revokes, the cache knows of every revocation.
        if freshness == Freshness::Now && self.remembered_for.is_some() {
            self.lock().by_digest.remove(&principal.sha256);
        }
        match self.holder(store, principal.sha256).await {
            Ok(_) => Ok(true),
            Err(problem) if problem.code == ProblemCode::Unauthenticated.as_str() => Ok(false),
            Err(unknown) => Err(unknown),
        }
    }

    async fn holder(&self, store: &dyn Store, sha256: Digest) -> Result<Arc<Principal>> {
        let revocations = {
            let remembered = self.lock();
            if let Some((read_at, principal)) = remembered.by_digest.get(&sha256)
                && self.remembered_for.is_none_or(|limit| read_at.elapsed() < limit)
            {
                return Ok(principal.clone());
            }
            remembered.revocations
        };
        // Before the read: it may take long, and the token be revoked meanwhile.
        let read_at = Instant::now();
        let token = store.token(&sha256).await.map_err(of_store)?;
        let Some(principal) = token.and_then(Principal::of) else {
            return Err(ProblemCode::Unauthenticated.because("the token is not known, or was revoked"));
        };
        let principal = Arc::new(principal);
        let mut remembered = self.lock();
        if remembered.revocations == revocations {
            if remembered.by_digest.len() >= REMEMBERED {
                remembered.by_digest.clear();
            }
            remembered.by_digest.insert(sha256, (read_at, principal.clone()));
        }
        Ok(principal)
    }

    /// A token was revoked: nobody is let in from memory.
    pub(crate) fn forget(&self) {
        let mut remembered = self.lock();
        remembered.revocations += 1;
        remembered.by_digest.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().expect("no holder of the lock panics")
    }
}

impl Principal {
    /// The holder of a token that counts.
    fn of(token: Token) -> Option<Self> {
        if token.revoked_at.is_some() {
            return None;
        }
        let actor = match &token.peer_id {
            Some(peer) => format!("peer:{peer}"),
            None => format!("token:{}", token.id),
        };
        Some(Self {
            token_id: Arc::from(token.id),
            role: Role::parse(&token.role)?,
            scopes: token.scopes,
            circle: token.circle,
            peer_id: token.peer_id,
            actor: Arc::from(actor),
            only: None,
            sha256: token.sha256,
        })
    }

    /// The doer of one attempt of one job.
    pub(crate) fn of_attempt(job_id: JobId, attempt_id: &AttemptId, circle: Option<String>) -> Self {
        Self {
            token_id: Arc::from(attempt_id.as_str()),
            role: Role::Agent,
            scopes: Vec::new(),
            circle,
            peer_id: None,
            actor: Arc::from(format!("{DOER}{attempt_id}")),
            only: Some(job_id),
            sha256: Digest([0; 32]),
        }
    }

    /// Everybody, where the operator has turned authentication off.
    pub(crate) fn anybody() -> Self {
        Self {
            token_id: Arc::from("anybody"),
            role: Role::Admin,
            scopes: vec![crate::access::authorise::EXEC_SCOPE.to_owned()],
            circle: None,
            peer_id: None,
            actor: Arc::from("token:anybody"),
            only: None,
            sha256: Digest([0; 32]),
        }
    }
}
