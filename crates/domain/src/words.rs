//! Enums whose values are words: in tables, on the wire and in messages.

/// An enum with the word of each value; from that the list of all values, reading and writing.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $Name:ident { $($(#[$doc:meta])* $Value:ident = $word:expr,)+ }) => {
        $(#[$meta])*
        pub enum $Name {
            $($(#[$doc])* $Value,)+
        }

        impl $Name {
            /// Every value, in the order of their declaration.
            pub const ALL: [Self; [$(Self::$Value),+].len()] = [$(Self::$Value),+];

            /// The word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Value => $word,)+
                }
            }

            /// Reads the word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.as_str() == word)
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;
