//! The nodes of the model.

use domain::Timestamp;

use super::Tables;
use crate::{MAX_NODES, Node, Taking};

impl Tables {
    pub(super) fn nodes(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = self.nodes.values().cloned().collect();
        nodes.sort_by(|a, b| (b.started_at, &a.id).cmp(&(a.started_at, &b.id)));
        nodes.truncate(MAX_NODES);
        nodes
    }

    pub(super) fn keep_node(&mut self, node: Node, forget_before: Timestamp) {
        let taking = self.nodes.get(&node.id).map_or(Taking::Takes, |kept| kept.taking);
        let id = node.id.clone();
        self.nodes.insert(id.clone(), Node { taking, ..node });
        self.nodes.retain(|kept, node| *kept == id || node.heartbeat_at >= forget_before);
    }

    pub(super) fn tell_node(&mut self, id: &str, taking: Taking) -> bool {
        let Some(node) = self.nodes.get_mut(id) else { return false };
        node.taking = taking;
        true
    }
}
