//! The nodes of the model.

use domain::Timestamp;

use super::Tables;
use crate::{Node, StoreError, Taking};

impl Tables {
    pub(super) fn keep_node(&mut self, node: Node, forget_before: Timestamp) -> Result<(), StoreError> {
        node.check()?;
        let taking = self.nodes.get(&node.id).map_or(Taking::Takes, |kept| kept.taking);
        let id = node.id.clone();
        self.nodes.insert(id.clone(), Node { taking, ..node });
        self.nodes.retain(|kept, node| *kept == id || node.heartbeat_at >= forget_before);
        Ok(())
    }

    pub(super) fn tell_node(&mut self, id: &str, taking: Taking) -> bool {
        let Some(node) = self.nodes.get_mut(id) else { return false };
        node.taking = taking;
        true
    }
}
