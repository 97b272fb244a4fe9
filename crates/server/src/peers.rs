//! `/peers`: those who pull work: who is registered, who is there, and who is meant by a name.
//!
//! Whoever does not see a circle does not see its peers either: they read like "not there".

pub(crate) mod asks;
mod meant;
mod presence;
mod read;
mod register;

pub(crate) use meant::{ASKED, assign, named};
pub(crate) use presence::{anyone_here, here, waits, works_there};
pub(crate) use read::{list, read};
pub(crate) use register::{forget, register};

use api::{ProblemCode, Role};
use domain::peer::{PeerKey, Registrar, is_keeper};

use crate::access::{Principal, authorise};
use crate::problem::of_store;
use crate::{Result, Server};

/// Refuses a caller that does not speak for a peer: a bound token speaks for its own in the circles that it sees, another doer for
/// those that it registered.
pub(crate) async fn check_speaks_for(server: &Server, principal: &Principal, key: &PeerKey) -> Result<()> {
    let speaks = match (principal.role, &principal.peer_id) {
        _ if !authorise::sees(principal, key.circle.as_deref()) => false,
        (Role::Admin | Role::Operator, _) => true,
        (Role::Peer | Role::Agent | Role::Viewer, Some(own)) => *own == key.id,
        (Role::Peer | Role::Agent, None) => {
            let peer = server.store().peer(key).await.map_err(of_store)?;
            peer.is_some_and(|peer| is_keeper(&peer, registrar(principal)))
        }
        (Role::Viewer, None) => false,
    };
    if speaks {
        return Ok(());
    }
    Err(ProblemCode::Forbidden.because("the token does not speak for this peer"))
}

fn registrar(principal: &Principal) -> Registrar<'_> {
    Registrar { token: &principal.token_id, bound_to: principal.peer_id.as_deref() }
}
