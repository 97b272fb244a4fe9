//! Who is meant when a peer is named: looked up here, decided in `domain::peer`. Never one of several, and nobody of another circle.

use api::{Candidate, CreateJob, Problem, ProblemCode};
use domain::peer::{MAX_CANDIDATES, Meant, Peer, PeerKey, is_fit_for_id, is_id, meant};
use store::{OfCircle, PeerQuery};

use crate::access::{Principal, authorise};
use crate::problem::{at, of_store};
use crate::render::RawObject;
use crate::{Result, Server};

/// What a peer is named for, and what is said if nobody or several are meant.
pub(crate) struct Naming {
    field: &'static str,
    nobody: ProblemCode,
    several: ProblemCode,
}

/// To do a job.
const ASSIGNED: Naming = Naming {
    field: "assigned_peer_id",
    nobody: ProblemCode::AssignedPeerNotFound,
    several: ProblemCode::AmbiguousAssignedPeer,
};
/// To be asked.
pub(crate) const ASKED: Naming =
    Naming { field: "to_peer", nobody: ProblemCode::PeerNotFound, several: ProblemCode::AmbiguousPeer };

/// Puts the id of the peer in the place of its name, before anything is stored.
pub(crate) async fn assign(server: &Server, principal: &Principal, create: &mut CreateJob) -> Result<()> {
    if create.assigned_peer_id.is_none() {
        create.assigned_peer_id = named_in_execution(create);
    }
    let Some(word) = &create.assigned_peer_id else { return Ok(()) };
    if is_id(word) {
        return Ok(());
    }
    let circle = authorise::circle_of_new(principal, create.circle.clone())?;
    let id = named(server, principal, &ASSIGNED, word, circle.as_deref()).await?;
    create.assigned_peer_id = Some(id);
    Ok(())
}

/// The peer that `request.execution.target` names: it is looked up like the field of the request.
fn named_in_execution(create: &CreateJob) -> Option<String> {
    let request = RawObject::parse(create.request.as_ref()?.as_str())?;
    let execution = RawObject::parse(request.get("execution")?.get())?;
    let target = RawObject::parse(execution.get("target")?.get())?;
    target.text("assigned_peer_id")
}

/// The id of the peer that is meant in a circle.
pub(crate) async fn named(
    server: &Server,
    principal: &Principal,
    naming: &Naming,
    word: &str,
    circle: Option<&str>,
) -> Result<String> {
    if is_id(word) {
        return if is_fit_for_id(word) { Ok(word.to_owned()) } else { Err(naming.nobody(word, &[])) };
    }
    let key = PeerKey::new(circle, word);
    let registered = server.store().peer(&key).await.map_err(of_store)?;
    let query = PeerQuery {
        circle: OfCircle::Only(circle.map(str::to_owned)),
        display_name: Some(word.to_owned()),
        limit: MAX_CANDIDATES,
        ..PeerQuery::default()
    };
    let called = server.store().peers(query).await.map_err(of_store)?.peers;
    match meant(word, circle, registered.as_ref(), &called) {
        Meant::Peer(id) => Ok(id),
        Meant::Nobody => Err(naming.nobody(word, &with_id(server, principal, word).await?)),
        Meant::Several(several) => Err(naming.several(word, several)),
    }
}

/// The peers with this id in the circles that the caller sees, at most `MAX_CANDIDATES`.
pub(super) async fn with_id(server: &Server, principal: &Principal, id: &str) -> Result<Vec<Peer>> {
    let found = if let Some(own) = &principal.circle {
        let key = PeerKey::new(Some(own), id);
        server.store().peer(&key).await.map(|found| found.into_iter().collect())
    } else {
        let query = PeerQuery { id: Some(id.to_owned()), limit: MAX_CANDIDATES, ..PeerQuery::default() };
        server.store().peers(query).await.map(|page| page.peers)
    };
    let mut peers: Vec<Peer> = found.map_err(of_store)?;
    peers.retain(|peer| authorise::sees(principal, peer.circle.as_deref()));
    Ok(peers)
}

impl Naming {
    /// `elsewhere` are peers of other circles with this id, which the caller sees.
    fn nobody(&self, word: &str, elsewhere: &[Peer]) -> Problem {
        let circles: Vec<&str> = elsewhere.iter().filter_map(|peer| peer.circle.as_deref()).collect();
        let told = match circles[..] {
            [] => format!("no peer has the id or name {word:?} in this circle; see GET /peers"),
            [circle] => format!("{word:?} works in the circle {circle:?}; name it as `circle`"),
            _ => format!("{word:?} works in the circles {circles:?}; name one of them as `circle`"),
        };
        at(self.nobody, self.nobody.as_str(), &["body", self.field], told).about_peer(word)
    }

    fn several(&self, word: &str, several: Vec<Peer>) -> Problem {
        let told = format!("several peers are called {word:?}; name one by its peer_id");
        let problem = at(self.several, self.several.as_str(), &["body", self.field], told);
        problem.about_peer(word).between(candidates(several))
    }
}

/// Those that the caller chooses from.
pub(super) fn candidates(several: Vec<Peer>) -> Vec<Candidate> {
    let candidate =
        |peer: Peer| Candidate { peer_id: peer.id, display_name: peer.display_name, circle: peer.circle };
    several.into_iter().map(candidate).collect()
}
