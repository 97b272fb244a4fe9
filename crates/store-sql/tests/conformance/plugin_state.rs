//! What plugins remember: written with a commit or not at all, from the version that is there, and no part of the ledger.

use store::{
    Commit, KEPT_PLUGIN_FACTS, MAX_PLUGIN_STATE_BYTES, PluginFact, PluginStateChange, Store, StoreError,
};

use crate::given::*;
use crate::subject::on_every_store;

fn change(plugin: &str, expected_version: u64, state: &str) -> PluginStateChange {
    PluginStateChange { plugin: plugin.to_owned(), expected_version, state: state.into(), facts: Vec::new() }
}

fn fact(number: u64) -> PluginFact {
    PluginFact { fact_type: "tide.snapshot".to_owned(), json: format!("{{\"n\":{number}}}").into() }
}

/// A commit that makes a job and changes this.
fn with(name: &str, plugin_states: Vec<PluginStateChange>) -> Commit {
    Commit { plugin_states, ..commit(vec![creation(&job(name), created(), at(1))], at(1)) }
}

async fn state(store: &dyn Store, plugin: &str) -> Option<(u64, String)> {
    store.plugin_state(plugin).await.unwrap().map(|state| (state.version, state.state.to_string()))
}

#[tokio::test]
async fn state_comes_back_word_for_word_with_its_version() {
    on_every_store(async |store| {
        assert_eq!(state(&*store, "gauge").await, None);
        let text = r#"{"mtime_ns":1763337600123456789, "ü": 0.10}"#;
        store.commit(with("1", vec![change("gauge", 0, text)])).await.unwrap();
        assert_eq!(state(&*store, "gauge").await, Some((1, text.to_owned())));
        let both = vec![change("gauge", 1, "{}"), change("echo", 0, r#"{"a":1}"#)];
        store.commit(with("2", both)).await.unwrap();
        assert_eq!(state(&*store, "gauge").await, Some((2, "{}".to_owned())));
        assert_eq!(state(&*store, "echo").await, Some((1, r#"{"a":1}"#.to_owned())));
    })
    .await;
}

#[tokio::test]
async fn state_that_was_made_from_another_version_is_a_conflict_and_nothing_of_its_commit_is_there() {
    on_every_store(async |store| {
        store.commit(with("1", vec![change("gauge", 0, "{}")])).await.unwrap();
        for (name, version) in [("2", 0), ("3", 2)] {
            let late = with(name, vec![change("echo", 0, "{}"), change("gauge", version, r#"{"late":1}"#)]);
            assert_eq!(store.commit(late).await, Err(StoreError::Conflict));
            assert!(store.load(&job(name)).await.unwrap().is_none());
        }
        assert_eq!(state(&*store, "gauge").await, Some((1, "{}".to_owned())));
        assert_eq!(state(&*store, "echo").await, None);
    })
    .await;
}

#[tokio::test]
async fn of_many_commits_at_once_on_one_state_exactly_one_is_done() {
    on_every_store(async |store| {
        for version in 0..5 {
            let commits = (0..8).map(|number| {
                let text = format!("{{\"by\":{number}}}");
                store.commit(with(&format!("{version}-{number}"), vec![change("gauge", version, &text)]))
            });
            let answers = futures::future::join_all(commits).await;
            assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
            let others = answers.iter().filter(|answer| **answer == Err(StoreError::Conflict)).count();
            assert_eq!(others, 7, "{answers:?}");
        }
        assert_eq!(state(&*store, "gauge").await.unwrap().0, 5);
    })
    .await;
}

#[tokio::test]
async fn commit_that_is_repeated_word_for_word_changes_the_state_once() {
    on_every_store(async |store| {
        let mut once = with("1", vec![change("gauge", 0, r#"{"n":1}"#)]);
        once.plugin_states[0].facts.push(fact(1));
        let first = store.commit(once.clone()).await.unwrap();
        assert_eq!(store.commit(once).await, Ok(first));
        assert_eq!(state(&*store, "gauge").await, Some((1, r#"{"n":1}"#.to_owned())));
        assert_eq!(store.plugin_facts("gauge", 0, 10).await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn facts_of_a_plugin_are_counted_for_itself_and_the_newest_are_kept() {
    on_every_store(async |store| {
        let per_commit = 100;
        let commits = KEPT_PLUGIN_FACTS / per_commit + 1;
        for version in 0..commits {
            let mut next = with(&version.to_string(), vec![change("gauge", version, "{}")]);
            let first = version * per_commit + 1;
            next.plugin_states[0].facts = (first..first + per_commit).map(fact).collect();
            store.commit(next).await.unwrap();
        }
        let mut other = with("other", vec![change("echo", 0, "{}")]);
        other.plugin_states[0].facts = vec![fact(9)];
        store.commit(other).await.unwrap();
        let oldest = store.plugin_facts("gauge", 0, 2).await.unwrap();
        let numbers: Vec<u64> = oldest.iter().map(|kept| kept.number).collect();
        assert_eq!(numbers, [per_commit + 1, per_commit + 2]);
        assert_eq!(oldest[0].fact, fact(per_commit + 1));
        let newest = store.plugin_facts("gauge", commits * per_commit - 1, 10).await.unwrap();
        assert_eq!(newest.len(), 1);
        assert_eq!(store.plugin_facts("echo", 0, 10).await.unwrap()[0].number, 1);
    })
    .await;
}

#[tokio::test]
async fn state_over_its_limit_is_refused_whole() {
    on_every_store(async |store| {
        let large = "x".repeat(MAX_PLUGIN_STATE_BYTES + 1);
        let refused = store.commit(with("1", vec![change("gauge", 0, &large)])).await;
        assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
        let twice = vec![change("gauge", 0, "{}"), change("gauge", 0, "{}")];
        assert!(matches!(store.commit(with("2", twice)).await, Err(StoreError::Broken(_))));
        assert_eq!(state(&*store, "gauge").await, None);
    })
    .await;
}
