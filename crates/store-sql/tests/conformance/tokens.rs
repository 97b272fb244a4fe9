//! Access tokens: kept by digest, revoked once, bounded, and no part of the ledger.

use domain::Digest;
use store::{MAX_TOKEN_SCOPES, MAX_TOKEN_TEXT_CHARS, MAX_TOKENS, Store, StoreError, Token, sha256};

use crate::given::*;
use crate::subject::on_every_store;

fn digest(name: &str) -> Digest {
    sha256(name.as_bytes())
}

pub fn token(name: &str, seconds: u64) -> Token {
    Token {
        id: format!("token-{name}"),
        sha256: digest(name),
        name: format!("{name} of the night shift"),
        role: "operator".to_owned(),
        scopes: vec!["jobs:read".to_owned(), "a \"quoted\", scope".to_owned()],
        circle: Some("studio".to_owned()),
        peer_id: None,
        created_at: at(seconds),
        revoked_at: None,
    }
}

async fn kept_names(store: &dyn Store) -> Vec<String> {
    store.tokens().await.unwrap().into_iter().map(|token| token.id).collect()
}

#[tokio::test]
async fn token_is_found_by_its_digest_with_everything_that_was_kept() {
    on_every_store(async |store| {
        let plain =
            Token { scopes: Vec::new(), circle: None, peer_id: Some("peer-7".to_owned()), ..token("b", 1) };
        for token in [plain.clone(), token("a", 2)] {
            store.keep_token(token.clone()).await.unwrap();
            assert_eq!(store.token(&token.sha256).await, Ok(Some(token)));
        }
        assert_eq!(store.token(&digest("c")).await, Ok(None));
        assert_eq!(store.tokens().await, Ok(vec![plain, token("a", 2)]));
        assert!(store.facts_after(0, 10).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn id_and_digest_of_a_token_are_given_once_also_after_it_was_revoked() {
    on_every_store(async |store| {
        store.keep_token(token("a", 0)).await.unwrap();
        let same_id = Token { sha256: digest("other"), ..token("a", 1) };
        let same_digest = Token { id: "token-other".to_owned(), ..token("a", 1) };
        for _ in 0..2 {
            for second in [token("a", 0), same_id.clone(), same_digest.clone()] {
                assert_eq!(store.keep_token(second).await, Err(StoreError::Conflict));
            }
            assert_eq!(store.revoke_token("token-a", at(2)).await, Ok(true));
        }
        assert_eq!(store.tokens().await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn token_is_revoked_once_and_its_first_time_counts() {
    on_every_store(async |store| {
        store.keep_token(token("a", 0)).await.unwrap();
        store.keep_token(token("b", 0)).await.unwrap();
        assert_eq!(store.revoke_token("token-c", at(1)).await, Ok(false));
        assert_eq!(store.revoke_token("token-a", at(1)).await, Ok(true));
        assert_eq!(store.revoke_token("token-a", at(5)).await, Ok(true));
        let revoked = Token { revoked_at: Some(at(1)), ..token("a", 0) };
        assert_eq!(store.token(&digest("a")).await, Ok(Some(revoked.clone())));
        assert_eq!(store.tokens().await, Ok(vec![revoked, token("b", 0)]));
    })
    .await;
}

#[tokio::test]
async fn token_over_the_limit_is_refused_and_only_revoked_ones_make_room() {
    on_every_store(async |store| {
        for number in 0..MAX_TOKENS {
            store.keep_token(token(&format!("{number:04}"), 0)).await.unwrap();
        }
        let refused = store.keep_token(token("more", 1)).await;
        assert_eq!(refused, Err(StoreError::TooLarge { what: "tokens in use", limit: MAX_TOKENS }));
        assert_eq!(kept_names(&*store).await.len(), MAX_TOKENS);

        store.revoke_token("token-0003", at(3)).await.unwrap();
        store.revoke_token("token-0007", at(2)).await.unwrap();
        store.keep_token(token("more", 1)).await.unwrap();
        let names = kept_names(&*store).await;
        assert_eq!(names.len(), MAX_TOKENS);
        assert!(names.contains(&"token-0003".to_owned()) && !names.contains(&"token-0007".to_owned()));
        assert_eq!(names.last().map(String::as_str), Some("token-more"));
    })
    .await;
}

#[tokio::test]
async fn texts_of_a_token_are_bounded() {
    on_every_store(async |store| {
        let long = "x".repeat(MAX_TOKEN_TEXT_CHARS + 1);
        let scopes = vec!["jobs:read".to_owned(); MAX_TOKEN_SCOPES + 1];
        for over in [
            Token { id: long.clone(), ..token("a", 0) },
            Token { name: long.clone(), ..token("a", 0) },
            Token { role: long.clone(), ..token("a", 0) },
            Token { circle: Some(long.clone()), ..token("a", 0) },
            Token { peer_id: Some(long.clone()), ..token("a", 0) },
            Token { scopes: vec![long.clone()], ..token("a", 0) },
            Token { scopes, ..token("a", 0) },
        ] {
            assert_eq!(store.keep_token(over).await.unwrap_err().code(), "too_large");
        }
        assert!(store.tokens().await.unwrap().is_empty());
    })
    .await;
}
