//! Every limit of the wire, by name.

/// The body of one request.
pub const MAX_REQUEST_BYTES: usize = 5 * 1_048_576;
/// The body of a batch.
pub const MAX_BATCH_BYTES: usize = 16 * 1_048_576;
/// Jobs in one batch.
pub const MAX_BATCH_JOBS: usize = 1_000;
/// How deep JSON may be nested.
pub const MAX_NESTING: usize = 64;
/// The length of an idempotency key, in characters.
pub const MAX_KEY_CHARS: usize = 255;
/// Rows of a list when nothing is said.
pub const DEFAULT_PAGE: usize = 100;
/// The most rows of a list.
pub const MAX_PAGE: usize = 1_000;
