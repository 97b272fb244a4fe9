//! Peers: who pulls work, under which names, and who is meant when one is named. The one file that decides about them.
//!
//! A peer is coordination, not part of the ledger: what is stored of a job is the peer's id, so a peer may be renamed or forgotten
//! without a word in the job. An exact id beats any display name, and nobody is ever meant by a look-alike.

use crate::limits::{
    MAX_ID_BYTES, MAX_LABEL_BYTES, MAX_TITLE_BYTES, check_bytes, check_indexed, check_optional, check_text,
};
use crate::{Json, Refusal, Timestamp};

/// Peers that are registered at the same time.
pub const MAX_PEERS: usize = 50_000;
/// Labels of one peer, and capabilities.
pub const MAX_PEER_LABELS: usize = 64;
/// What a peer says of itself besides.
pub const MAX_PEER_METADATA_BYTES: usize = 4_096;
/// Peers that an ambiguous name lists.
pub const MAX_CANDIDATES: usize = 10;
/// A peer that was not heard of for this long, and does not wait for work, is absent.
pub const PRESENCE_GRACE_SECONDS: u64 = 90;
/// What begins so is an id, whether it is registered or not.
const ID_PREFIXES: [&str; 2] = ["peer-", "repow-"];

/// Which peer: an id names one within its circle. The same id in another circle is another peer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerKey {
    /// Its id.
    pub id: String,
    /// The circle that it works in.
    pub circle: Option<String>,
}

/// Someone who pulls work, as it has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its id; no other peer of its circle has it.
    pub id: String,
    /// What people call it; others may be called so too.
    pub display_name: String,
    /// The circle that it works in.
    pub circle: Option<String>,
    /// What it may be picked by.
    pub labels: Vec<String>,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// The folder that it works in.
    pub path: Option<String>,
    /// What it runs on.
    pub backend: Option<String>,
    /// What it says of itself besides: an object.
    pub metadata: Json,
    /// The token that registered it.
    pub registered_by: String,
    /// When it was registered first.
    pub registered_at: Timestamp,
    /// Rises with every registration.
    pub version: u64,
    /// The node that hears of it; none if nobody does.
    pub present_on: Option<String>,
    /// When it came or went last.
    pub seen_at: Timestamp,
}

/// Who registers a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registrar<'a> {
    /// The token.
    pub token: &'a str,
    /// The peer that the token speaks for.
    pub bound_to: Option<&'a str>,
}

/// Another token has registered the id in this circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdTaken;

/// Who is meant by a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// This one, by its id.
    Peer(String),
    /// Nobody of that circle.
    Nobody,
    /// Several are called so: never one of them.
    Several(Vec<Peer>),
}

/// Whether a peer is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It waits for work, or was heard of just now.
    Present,
    /// It was not heard of for a while. It may live all the same.
    Absent,
}

/// A peer has come or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The peer.
    pub id: String,
    /// The circle that it was heard of in: a peer of the same name in another one is not meant.
    pub circle: Option<String>,
    /// The node that hears of it, or heard of it last.
    pub node: String,
    /// Whether it is there now.
    pub presence: Presence,
    /// When it was heard of last.
    pub seen_at: Timestamp,
}

/// The registration that follows from the one that is there under the same key. Its first token keeps it, and a token that speaks
/// for the peer.
pub fn register(known: Option<&Peer>, new: Peer, by: Registrar<'_>) -> Result<Peer, IdTaken> {
    let Some(known) = known else { return Ok(Peer { version: 1, ..new }) };
    if !is_keeper(known, by) {
        return Err(IdTaken);
    }
    Ok(Peer { version: known.version + 1, registered_at: known.registered_at, ..new })
}

/// Whether a peer is kept by this token, which sees the peer's circle.
pub fn is_keeper(peer: &Peer, by: Registrar<'_>) -> bool {
    peer.registered_by == by.token || by.bound_to == Some(peer.id.as_str())
}

/// Whether a word is an id by its form.
pub fn is_id(word: &str) -> bool {
    ID_PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

/// Who of a circle is meant by a word. `registered` is the peer with this very id, `called` those who are called so.
pub fn meant(word: &str, circle: Option<&str>, registered: Option<&Peer>, called: &[Peer]) -> Meant {
    if is_id(word) || registered.is_some_and(|peer| peer.id == word && peer.circle.as_deref() == circle) {
        return Meant::Peer(word.to_owned());
    }
    let mut called =
        called.iter().filter(|peer| peer.display_name == word && peer.circle.as_deref() == circle);
    match (called.next(), called.next()) {
        (None, _) => Meant::Nobody,
        (Some(one), None) => Meant::Peer(one.id.clone()),
        (Some(one), Some(other)) => {
            let several = [one, other].into_iter().chain(called).take(MAX_CANDIDATES);
            Meant::Several(several.cloned().collect())
        }
    }
}

impl PeerKey {
    /// The peer with this id in this circle.
    pub fn new(circle: Option<&str>, id: &str) -> Self {
        Self { id: id.to_owned(), circle: circle.map(str::to_owned) }
    }
}

impl Peer {
    /// Which peer it is.
    pub fn key(&self) -> PeerKey {
        PeerKey { id: self.id.clone(), circle: self.circle.clone() }
    }

    /// Whether it is there, as far as its row tells: what a dead node has heard counts no more.
    pub fn presence(&self, is_alive: impl Fn(&str) -> bool) -> Presence {
        match &self.present_on {
            Some(node) if is_alive(node) => Presence::Present,
            Some(_) | None => Presence::Absent,
        }
    }

    /// Refuses what is over its limit.
    pub fn check(&self) -> Result<(), Refusal> {
        check_text("peer_id", &self.id, MAX_ID_BYTES)?;
        check_text("display_name", &self.display_name, MAX_LABEL_BYTES)?;
        check_optional("circle", self.circle.as_deref(), MAX_LABEL_BYTES)?;
        check_indexed("path", self.path.as_deref(), MAX_TITLE_BYTES)?;
        check_optional("backend", self.backend.as_deref(), MAX_LABEL_BYTES)?;
        check_bytes("metadata", self.metadata.as_str(), MAX_PEER_METADATA_BYTES)?;
        for (what, words) in [("labels", &self.labels), ("capabilities", &self.capabilities)] {
            if words.len() > MAX_PEER_LABELS {
                return Err(Refusal::TooLarge { what, limit: MAX_PEER_LABELS });
            }
            words.iter().try_for_each(|word| check_text(what, word, MAX_LABEL_BYTES))?;
        }
        Ok(())
    }

    /// The field that people could not read, if there is one.
    pub fn misworded(&self) -> Option<&'static str> {
        let labels = self.labels.iter().map(|label| ("labels", label));
        let capabilities = self.capabilities.iter().map(|word| ("capabilities", word));
        let named = [("display_name", &self.display_name)].into_iter();
        let optional = [("circle", &self.circle), ("path", &self.path), ("backend", &self.backend)];
        let optional = optional.into_iter().filter_map(|(field, text)| Some((field, text.as_ref()?)));
        if !is_fit_for_id(&self.id) {
            return Some("peer_id");
        }
        let mut words = named.chain(optional).chain(labels).chain(capabilities);
        words.find(|(_, word)| !is_printable(word)).map(|(field, _)| field)
    }
}

/// Whether a word can be a peer's id: letters, digits and `-._:@`, so that it can stand in an address.
pub fn is_fit_for_id(word: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:@".contains(&byte);
    !word.is_empty() && word.len() <= MAX_ID_BYTES && word.bytes().all(is_fit)
}

fn is_printable(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(id: &str, display_name: &str, circle: Option<&str>) -> Peer {
        Peer {
            id: id.to_owned(),
            display_name: display_name.to_owned(),
            circle: circle.map(str::to_owned),
            labels: Vec::new(),
            capabilities: Vec::new(),
            path: None,
            backend: None,
            metadata: Json::parse("{}").unwrap(),
            registered_by: "token-1".to_owned(),
            registered_at: Timestamp::from_seconds(1),
            version: 1,
            present_on: None,
            seen_at: Timestamp::from_seconds(1),
        }
    }

    // conforms: R31 R99
    #[test]
    fn exact_id_beats_any_display_name() {
        let own = peer("joan", "the painter", None);
        let look_alike = peer("peer-2", "joan", None);
        let called = [look_alike];
        assert_eq!(meant("joan", None, Some(&own), &called), Meant::Peer("joan".to_owned()));
        assert_eq!(meant("joan", None, None, &called), Meant::Peer("peer-2".to_owned()));
        assert_eq!(
            meant("peer-9", None, None, &[peer("x", "peer-9", None)]),
            Meant::Peer("peer-9".to_owned())
        );
    }

    // conforms: R32 R98 R101
    #[test]
    fn name_of_several_or_of_another_circle_means_nobody() {
        let (one, two) = (peer("a", "joan", Some("press")), peer("b", "joan", Some("press")));
        let foreign = peer("c", "joan", Some("bindery"));
        let called = [one.clone(), two.clone(), foreign.clone()];
        assert_eq!(meant("joan", Some("press"), None, &called), Meant::Several(vec![one, two]));
        assert_eq!(meant("joan", Some("bindery"), None, &called), Meant::Peer("c".to_owned()));
        assert_eq!(meant("joan", None, None, &called), Meant::Nobody);
        assert_eq!(meant("c", Some("press"), Some(&foreign), &[]), Meant::Nobody);
        assert_eq!(meant("joa", Some("bindery"), None, &called), Meant::Nobody);
    }

    #[test]
    fn id_stays_with_its_token() {
        let known = peer("a", "joan", Some("press"));
        let own = Registrar { token: "token-1", bound_to: None };
        let bound = Registrar { token: "token-2", bound_to: Some("a") };
        let other = Registrar { token: "token-2", bound_to: Some("b") };
        let again = Peer { registered_at: Timestamp::from_seconds(9), ..peer("a", "Joan", Some("press")) };
        for by in [own, bound] {
            let kept = register(Some(&known), again.clone(), by).unwrap();
            assert_eq!((kept.version, kept.registered_at), (2, known.registered_at));
        }
        assert_eq!(register(Some(&known), again.clone(), other), Err(IdTaken));
        assert_eq!(register(None, again, other).unwrap().version, 1);
    }

    #[test]
    fn what_a_dead_node_has_heard_counts_no_more() {
        let heard = Peer { present_on: Some("node-1".to_owned()), ..peer("a", "joan", None) };
        assert_eq!(heard.presence(|node| node == "node-1"), Presence::Present);
        assert_eq!(heard.presence(|_| false), Presence::Absent);
        assert_eq!(peer("a", "joan", None).presence(|_| true), Presence::Absent);
    }

    #[test]
    fn what_cannot_stand_in_an_address_is_no_id() {
        for bad in ["", "a b", "a/b", "a\n", "ä", "a?b", &"a".repeat(MAX_ID_BYTES + 1)] {
            assert!(!is_fit_for_id(bad), "{bad:?}");
        }
        for good in ["a", "peer-press-0011aabb", "joan@press:1.2-3"] {
            assert!(is_fit_for_id(good), "{good:?}");
        }
        assert_eq!(peer("a", "jo\nan", None).misworded(), Some("display_name"));
        assert_eq!(Peer { labels: vec![String::new()], ..peer("a", "b", None) }.misworded(), Some("labels"));
        assert_eq!(peer("a", "joan", Some("press")).misworded(), None);
    }
}
