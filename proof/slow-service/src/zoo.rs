//! What the manners do: `view` changes what is said about work, `answers` how it is sent.

mod answers;
mod bomb;
mod garbage;
mod view;

pub use answers::{accepts, misanswer};
pub use view::told;
