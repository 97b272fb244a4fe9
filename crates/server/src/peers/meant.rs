//! Who is meant when a peer is named: looked up here, decided in `domain::peer`. Never one of several, and nobody of another circle.

use api::{Candidate, CreateJob, FieldError, Problem, ProblemCode};
use domain::peer::{MAX_CANDIDATES, Meant, Peer, is_fit_for_id, is_id, meant};
use store::{OfCircle, PeerQuery};

use crate::authorise;
use crate::gate::Principal;
use crate::problem::of_store;
use crate::serve::Server;

/// What a peer is named for, and what is said if nobody is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// To do a job.
    Assigned,
    /// To be asked.
    Asked,
}

/// Puts the id of the peer in the place of its name, before anything is stored.
pub(crate) async fn assign(
    server: &Server,
    principal: &Principal,
    create: &mut CreateJob,
) -> Result<(), Problem> {
    let Some(word) = &create.assigned_peer_id else { return Ok(()) };
    if is_id(word) {
        return Ok(());
    }
    let circle = authorise::circle_of_new(principal, create.circle.clone())?;
    let id = named(server, principal, Naming::Assigned, word, circle.as_deref()).await?;
    create.assigned_peer_id = Some(id);
    Ok(())
}

/// The id of the peer that is meant in a circle.
pub(crate) async fn named(
    server: &Server,
    principal: &Principal,
    naming: Naming,
    word: &str,
    circle: Option<&str>,
) -> Result<String, Problem> {
    if is_id(word) {
        return if is_fit_for_id(word) { Ok(word.to_owned()) } else { Err(naming.nobody(word, None)) };
    }
    let registered = server.store().peer(word).await.map_err(|error| of_store(&error))?;
    let query = PeerQuery {
        circle: OfCircle::Only(circle.map(str::to_owned)),
        display_name: Some(word.to_owned()),
        limit: MAX_CANDIDATES,
        ..PeerQuery::default()
    };
    let called = server.store().peers(query).await.map_err(|error| of_store(&error))?.peers;
    match meant(word, circle, registered.as_ref(), &called) {
        Meant::Peer(id) => Ok(id),
        Meant::Nobody => {
            let seen = registered.filter(|peer| authorise::sees(principal, peer.circle.as_deref()));
            Err(naming.nobody(word, seen.as_ref()))
        }
        Meant::Several(several) => Err(naming.several(word, several)),
    }
}

impl Naming {
    const fn field(self) -> &'static str {
        match self {
            Self::Assigned => "assigned_peer_id",
            Self::Asked => "to_peer",
        }
    }

    /// `elsewhere` is a peer of another circle that the caller sees.
    fn nobody(self, word: &str, elsewhere: Option<&Peer>) -> Problem {
        let code = match self {
            Self::Assigned => ProblemCode::AssignedPeerNotFound,
            Self::Asked => ProblemCode::PeerNotFound,
        };
        let told = match elsewhere.and_then(|peer| peer.circle.as_deref()) {
            Some(circle) => format!("{word:?} works in the circle {circle:?}; name it as `circle`"),
            None => format!("no peer has the id or name {word:?} in this circle; see GET /peers"),
        };
        code.because(told.clone()).at(FieldError::new(code.as_str(), &["body", self.field()], told))
    }

    fn several(self, word: &str, several: Vec<Peer>) -> Problem {
        let code = match self {
            Self::Assigned => ProblemCode::AmbiguousAssignedPeer,
            Self::Asked => ProblemCode::AmbiguousPeer,
        };
        let candidates = several.into_iter().map(|peer| Candidate {
            peer_id: peer.id,
            display_name: peer.display_name,
            circle: peer.circle,
        });
        let told = format!("several peers are called {word:?}; name one by its peer_id");
        let error = FieldError::new(code.as_str(), &["body", self.field()], told.clone());
        code.because(told).at(error).between(candidates.collect())
    }
}
