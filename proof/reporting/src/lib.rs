//! What a long proof shows while it goes on and leaves behind: a line of progress, and a page with plots that needs nothing else.
//!
//! A crate of its own because the drill's judge shares no code with what it judges: this one knows nothing of longhaul.

mod conditions;
mod page;
mod plot;
mod progress;

pub use conditions::Conditions;
pub use page::{Page, escaped};
pub use plot::{Plot, bars, count_as, pairs};
pub use progress::Progress;
