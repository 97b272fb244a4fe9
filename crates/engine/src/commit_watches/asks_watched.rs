//! Whoever waits for an ask, or for what a peer is asked: woken when it may have changed, and looks for itself.
//!
//! Nobody is woken for the asks of others. On a shared store a hint wakes all of them: it does not say whose ask it was.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::ask::AskChange;
use store::Commit;
use tokio::sync::watch;

use crate::CommitWatch;
use crate::locked::Locked;

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AskTopic {
    /// That one ask is closed.
    Ask(String),
    /// That a peer is asked or asks.
    Peer {
        /// In which circle.
        circle: Option<String>,
        /// Which.
        id: String,
    },
}

/// Those who wait.
#[derive(Default)]
pub struct AsksWatched {
    waiting: Mutex<BTreeMap<AskTopic, watch::Sender<()>>>,
}

/// Someone's wait for one topic.
pub struct AskWatch {
    asks: Arc<AsksWatched>,
    topic: AskTopic,
    changed: watch::Receiver<()>,
}

impl AsksWatched {
    /// Waits from now on: whoever reads after this misses nothing.
    pub fn watch(self: &Arc<Self>, topic: AskTopic) -> AskWatch {
        let changed = self.waiting.locked().entry(topic.clone()).or_default().subscribe();
        AskWatch { asks: self.clone(), topic, changed }
    }

    /// An ask was opened or closed.
    pub fn note(&self, change: &AskChange) {
        let topics = match change {
            AskChange::Opened(ask) => {
                let peers = [Some(&ask.to_peer), ask.from_peer.as_ref()].into_iter().flatten();
                let topic = |id: &String| AskTopic::Peer { circle: ask.circle.clone(), id: id.clone() };
                peers.map(topic).chain(ask.reply_to.clone().map(AskTopic::Ask)).collect()
            }
            AskChange::Closed { id, .. } => vec![AskTopic::Ask(id.clone())],
        };
        let waiting = self.waiting.locked();
        for topic in topics {
            if let Some(changed) = waiting.get(&topic) {
                changed.send_replace(());
            }
        }
    }

    /// Others may have changed anything.
    pub(crate) fn look_again(&self) {
        self.waiting.locked().values().for_each(|changed| {
            changed.send_replace(());
        });
    }
}

impl AskWatch {
    /// Ends when there may be news since the last time.
    pub async fn changed(&mut self) {
        // Its sender is kept as long as anyone waits.
        let _ = self.changed.changed().await;
    }
}

impl Drop for AskWatch {
    fn drop(&mut self) {
        let mut waiting = self.asks.waiting.locked();
        // This one still counts.
        if waiting.get(&self.topic).is_some_and(|changed| changed.receiver_count() <= 1) {
            waiting.remove(&self.topic);
        }
    }
}

impl CommitWatch for AsksWatched {
    fn perhaps_committed(&self, commit: &Commit) {
        commit.asks.iter().for_each(|change| self.note(change));
    }
}
