//! This node among those that share its store: whether it may take work, what the others can do, and who is heard of here.

pub(crate) mod lane_limits;
pub(crate) mod membership;
pub(crate) mod neighbours;
pub(crate) mod presences;
pub(crate) mod standing;
