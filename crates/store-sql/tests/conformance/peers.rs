//! Peers: registered by compare-and-swap, found by id and by name, sighted only where they are; and no part of the ledger.

use domain::Json;
use domain::limits::MAX_LABEL_BYTES;
use domain::peer::{MAX_PEER_LABELS, Peer, PeerKey, Presence, Sighting};
use store::{MAX_SIGHTINGS, OfCircle, PeerQuery, Store, StoreError};

use crate::given::*;
use crate::subject::on_every_store;

pub fn peer(id: &str, display_name: &str, circle: Option<&str>) -> Peer {
    Peer {
        id: id.to_owned(),
        display_name: display_name.to_owned(),
        circle: circle.map(str::to_owned),
        labels: vec!["gpu".to_owned(), "a \"quoted\", label".to_owned()],
        capabilities: vec!["fold".to_owned()],
        path: Some("/srv/press".to_owned()),
        backend: None,
        metadata: Json::parse(r#"{"pid":18446744073709551615}"#).unwrap(),
        registered_by: "token-1".to_owned(),
        registered_at: at(1),
        version: 1,
        present_on: Some("node-a".to_owned()),
        seen_at: at(1),
    }
}

fn sighting(id: &str, circle: Option<&str>, node: &str, presence: Presence, seconds: u64) -> Sighting {
    let (id, node) = (id.to_owned(), node.to_owned());
    Sighting { id, circle: circle.map(str::to_owned), node, presence, seen_at: at(seconds) }
}

async fn ids(store: &dyn Store, query: PeerQuery) -> Vec<String> {
    store.peers(query).await.unwrap().peers.into_iter().map(|peer| peer.id).collect()
}

fn all() -> PeerQuery {
    PeerQuery { limit: 100, ..PeerQuery::default() }
}

#[tokio::test]
async fn registration_is_kept_whole_and_only_the_next_version_replaces_it() {
    on_every_store(async |store| {
        let first = peer("a", "joan", Some("press"));
        let (key, unknown) = (first.key(), PeerKey::new(Some("press"), "b"));
        store.keep_peer(first.clone()).await.unwrap();
        assert_eq!(store.peer(&key).await, Ok(Some(first.clone())));
        let other = Peer { registered_by: "token-2".to_owned(), ..peer("a", "not joan", Some("press")) };
        for version in [1, 3, 4] {
            let late = Peer { version, ..other.clone() };
            assert_eq!(store.keep_peer(late).await, Err(StoreError::Conflict));
        }
        assert_eq!(store.peer(&key).await, Ok(Some(first)));
        let second = Peer { version: 2, path: None, labels: Vec::new(), ..other };
        store.keep_peer(second.clone()).await.unwrap();
        assert_eq!(store.peer(&key).await, Ok(Some(second)));
        assert_eq!(store.forget_peer(&key, 1).await, Ok(false));
        assert_eq!(store.forget_peer(&unknown, 1).await, Ok(false));
        assert_eq!(store.forget_peer(&key, 2).await, Ok(true));
        assert_eq!(store.peer(&key).await, Ok(None));
        let unknown = Peer { version: 2, ..peer("c", "c", None) };
        assert_eq!(store.keep_peer(unknown).await, Err(StoreError::Conflict));
        assert!(store.facts_after(0, 10).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn same_id_in_two_circles_is_two_peers() {
    on_every_store(async |store| {
        let circles = [None, Some("bindery"), Some("press")];
        let [nowhere, bindery, press] = circles.map(|circle| peer("a", "joan", circle));
        for one in [&press, &nowhere, &bindery] {
            store.keep_peer(one.clone()).await.unwrap();
            assert_eq!(store.keep_peer(one.clone()).await, Err(StoreError::Conflict));
        }
        let again = Peer { version: 2, display_name: "ada".to_owned(), ..bindery.clone() };
        store.keep_peer(again.clone()).await.unwrap();
        store
            .note_sightings(vec![sighting("a", Some("bindery"), "node-b", Presence::Present, 7)])
            .await
            .unwrap();
        let bindery = Peer { present_on: Some("node-b".to_owned()), seen_at: at(7), ..again };
        for one in [&nowhere, &bindery, &press] {
            assert_eq!(store.peer(&one.key()).await, Ok(Some(one.clone())));
        }
        let with_id = || PeerQuery { id: Some("a".to_owned()), ..all() };
        store.keep_peer(peer("aa", "joan", None)).await.unwrap();
        assert_eq!(store.peers(with_id()).await.unwrap().peers, [nowhere.clone(), bindery, press.clone()]);
        let in_press = PeerQuery { circle: OfCircle::Only(Some("press".to_owned())), ..with_id() };
        assert_eq!(store.peers(in_press).await.unwrap().peers, std::slice::from_ref(&press));
        assert_eq!(store.forget_peer(&PeerKey::new(Some("bindery"), "a"), 2).await, Ok(true));
        assert_eq!(store.peers(with_id()).await.unwrap().peers, [nowhere, press]);
    })
    .await;
}

/// Every page ends within the peers of one id.
#[tokio::test]
async fn pages_of_all_circles_skip_and_repeat_no_peer_of_one_id() {
    on_every_store(async |store| {
        let mut kept = Vec::new();
        for id in ["a", "b", "c"] {
            for circle in [None, Some("bindery"), Some("press")] {
                let one = peer(id, "joan", circle);
                store.keep_peer(one.clone()).await.unwrap();
                kept.push(one.key());
            }
        }
        let joan = Some("joan".to_owned());
        for (query, wanted) in [
            (all(), &kept[..]),
            (PeerQuery { display_name: joan, ..all() }, &kept[..]),
            (PeerQuery { id: Some("b".to_owned()), ..all() }, &kept[3..6]),
        ] {
            let (mut query, mut seen) = (PeerQuery { limit: 2, ..query }, Vec::new());
            loop {
                let page = store.peers(query.clone()).await.unwrap();
                seen.extend(page.peers.iter().map(Peer::key));
                let Some(next) = page.next else { break };
                query.after = Some(next);
            }
            assert_eq!(seen, wanted);
        }
    })
    .await;
}

// conforms: R96
#[tokio::test]
async fn peers_are_listed_by_circle_name_and_label_a_page_at_a_time() {
    on_every_store(async |store| {
        let (press, bindery) = (Some("press"), Some("bindery"));
        for (id, name, circle) in [
            ("a", "joan", press),
            ("b", "joan", bindery),
            ("c", "joan", None),
            ("d", "ada", press),
            ("e", "joan", press),
        ] {
            store.keep_peer(peer(id, name, circle)).await.unwrap();
        }
        let plain = Peer { version: 2, labels: Vec::new(), ..peer("d", "ada", press) };
        store.keep_peer(plain).await.unwrap();
        let of = |circle: Option<&str>| OfCircle::Only(circle.map(str::to_owned));
        let joan = Some("joan".to_owned());
        assert_eq!(ids(&*store, all()).await, ["a", "b", "c", "d", "e"]);
        assert_eq!(ids(&*store, PeerQuery { circle: of(press), ..all() }).await, ["a", "d", "e"]);
        assert_eq!(ids(&*store, PeerQuery { circle: of(None), ..all() }).await, ["c"]);
        assert_eq!(
            ids(&*store, PeerQuery { display_name: joan.clone(), ..all() }).await,
            ["a", "b", "c", "e"]
        );
        let in_press = PeerQuery { circle: of(press), display_name: joan, ..all() };
        assert_eq!(ids(&*store, in_press).await, ["a", "e"]);
        let labelled = PeerQuery { circle: of(press), label: Some("gpu".to_owned()), ..all() };
        assert_eq!(ids(&*store, labelled).await, ["a", "e"]);
        let (mut query, mut seen) = (PeerQuery { limit: 2, ..all() }, Vec::new());
        loop {
            let page = store.peers(query.clone()).await.unwrap();
            assert!(page.peers.len() <= 2);
            seen.extend(page.peers.into_iter().map(|peer| peer.id));
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, ["a", "b", "c", "d", "e"]);
    })
    .await;
}

#[tokio::test]
async fn sighting_touches_the_peer_of_that_circle_and_nobody_says_that_one_has_gone_whom_another_hears() {
    on_every_store(async |store| {
        store.keep_peer(peer("a", "joan", Some("press"))).await.unwrap();
        let present_on = async || {
            let peer = store.peer(&PeerKey::new(Some("press"), "a")).await.unwrap().unwrap();
            (peer.present_on, peer.seen_at, peer.version)
        };
        let node = |name: &str| Some(name.to_owned());
        let sight = async |sighting: Sighting| store.note_sightings(vec![sighting]).await.unwrap();
        sight(sighting("a", None, "node-b", Presence::Present, 5)).await;
        sight(sighting("a", Some("bindery"), "node-b", Presence::Present, 5)).await;
        sight(sighting("b", Some("press"), "node-b", Presence::Present, 5)).await;
        assert_eq!(present_on().await, (node("node-a"), at(1), 1));
        sight(sighting("a", Some("press"), "node-b", Presence::Present, 6)).await;
        assert_eq!(present_on().await, (node("node-b"), at(6), 1));
        sight(sighting("a", Some("press"), "node-a", Presence::Absent, 7)).await;
        assert_eq!(present_on().await, (node("node-b"), at(6), 1));
        sight(sighting("a", Some("press"), "node-b", Presence::Absent, 8)).await;
        assert_eq!(present_on().await, (None, at(8), 1));
    })
    .await;
}

#[tokio::test]
async fn words_of_a_peer_and_sightings_are_bounded() {
    on_every_store(async |store| {
        let long = "x".repeat(MAX_LABEL_BYTES + 1);
        let labels = vec!["gpu".to_owned(); MAX_PEER_LABELS + 1];
        let metadata = Json::parse(&format!("{{\"a\":\"{}\"}}", "x".repeat(4_096))).unwrap();
        for over in [
            Peer { id: long.clone(), ..peer("a", "a", None) },
            Peer { display_name: long.clone(), ..peer("a", "a", None) },
            Peer { circle: Some(long.clone()), ..peer("a", "a", None) },
            Peer { backend: Some(long.clone()), ..peer("a", "a", None) },
            Peer { labels: vec![long.clone()], ..peer("a", "a", None) },
            Peer { capabilities: vec![long.clone()], ..peer("a", "a", None) },
            Peer { labels, ..peer("a", "a", None) },
            Peer { metadata, ..peer("a", "a", None) },
        ] {
            assert_eq!(store.keep_peer(over).await.unwrap_err().code(), "too_large");
        }
        assert!(ids(&*store, all()).await.is_empty());
        let many = vec![sighting("a", None, "node-a", Presence::Present, 1); MAX_SIGHTINGS + 1];
        assert_eq!(store.note_sightings(many).await.unwrap_err().code(), "too_large");
    })
    .await;
}
