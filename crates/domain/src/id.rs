//! Names of things: one newtype per kind of id, all plain text with a readable prefix. Those of records are in the modules of their kinds.
//!
//! Ids are made outside (randomness lives in one file of the engine); here they are only carried and compared.

/// An id of its own type.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// The id with this text.
            pub fn new(text: impl Into<std::sync::Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
pub(crate) use text_id;

text_id! {
    /// One dispatch of a job: `attempt-` and a UUIDv7 in hex. It is the fence of every report.
    AttemptId
}
text_id! {
    /// Who holds a claim: unique per process and boot.
    OwnerId
}
