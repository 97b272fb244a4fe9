//! What is written from the list of the kinds of record: the enums, their conversions and accessors, and every function that is one for all
//! kinds and calls that of the kind. The list itself stands in `record.rs`.

/// One line per kind: `Type ("word in tables and messages", "prefix of its ids", module, accessor): Id, Command, Fact::Beginning`. The id and
/// the times that every kind has, and the commands and facts that it shares with all others, are looked at here.
macro_rules! records {
    ($(
        $(#[$doc:meta])*
        $Name:ident ($word:literal, $prefix:literal, $module:ident, $as_kind:ident):
        $Id:ident, $Command:ident, $Fact:ident::$Beginning:ident,
    )+) => {
        words! {
            /// The kinds of record that have a stream of facts.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum RecordKind {
                $($(#[$doc])* $Name = $word,)+
            }
        }

        /// The id of any record; its text is the name of the record's stream.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RecordId {
            $(#[doc = concat!("Of the kind `", $word, "`.")] $Name($Id),)+
        }

        /// The state of one record, folded from its stream. It is written as its kind writes it.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Record {
            $($(#[$doc])* $Name(Box<$Name>),)+
        }

        /// What may be ordered.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Command {
            $(#[doc = concat!("Of the kind `", $word, "`.")] $Name($Command),)+
        }

        /// What happened to a record. It is written as its kind writes it.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Fact {
            $(#[doc = concat!("Of the kind `", $word, "`.")] $Name($Fact),)+
            /// Of any kind: its whole state, so that the facts before it can go.
            Checkpointed {
                /// What it holds.
                checkpointed: Box<Checkpoint>,
            },
        }

        /// Decides a command on the record with this id, present or not.
        pub fn decide(
            state: Option<&Record>,
            id: &RecordId,
            command: &Command,
            now: Timestamp,
        ) -> Decision<Fact> {
            match (command, id, state) {
                $(
                    (Command::$Name(command), RecordId::$Name(id), None) => {
                        crate::$module::decide_new(id, command, now).map(Fact::$Name)
                    }
                    (Command::$Name(command), RecordId::$Name(_), Some(Record::$Name(record))) => {
                        crate::$module::decide(record, command, now).map(Fact::$Name)
                    }
                )+
                (_, _, _) => Decision::refuse(Refusal::WrongRecordKind),
            }
        }

        /// Folds one fact, recorded at this time, into the record.
        pub fn apply(
            state: &mut Option<Record>,
            id: &RecordId,
            fact: &Fact,
            at: Timestamp,
        ) -> Result<(), Misfold> {
            match (state, fact, id) {
                (state, Fact::Checkpointed { checkpointed }, id) => checkpointed.apply(state, id),
                $(
                    (Some(Record::$Name(record)), Fact::$Name(fact), RecordId::$Name(_)) => {
                        crate::$module::apply(record, fact, at)
                    }
                    (state @ None, Fact::$Name($Fact::$Beginning(new)), RecordId::$Name(id)) => {
                        *state = Some($Name::new(id.clone(), new, at).into());
                        Ok(())
                    }
                )+
                (None, _, _) => Err(NO_BEGINNING),
                (Some(_), _, _) => Err(OTHER_KIND),
            }
        }

        impl RecordKind {
            /// How the ids of this kind begin.
            pub const fn id_prefix(self) -> &'static str {
                match self {
                    $(Self::$Name => $prefix,)+
                }
            }

            /// Whether its open records write checkpoints.
            pub const fn is_checkpointed(self) -> bool {
                match self {
                    $(Self::$Name => $Name::IS_CHECKPOINTED,)+
                }
            }

            /// The kind of which a fact under this name is.
            pub fn of_fact(name: &str) -> Option<Self> {
                let has = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
                $(if has($Fact::KIND_PREFIXES) {
                    return Some(Self::$Name);
                })+
                None
            }
        }

        impl RecordId {
            /// Reads a record id by its prefix.
            pub fn parse(text: &str) -> Result<Self, Refusal> {
                if text.len() > MAX_ID_BYTES {
                    return Err(Refusal::TooLarge { what: "id", limit: MAX_ID_BYTES });
                }
                $(if text.starts_with($prefix) {
                    return Ok(Self::$Name($Id::new(text)));
                })+
                Err(Refusal::UnknownIdForm)
            }

            /// The kind of record that this id names.
            pub const fn kind(&self) -> RecordKind {
                match self {
                    $(Self::$Name(_) => RecordKind::$Name,)+
                }
            }

            /// The text of the id.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$Name(id) => id.as_str(),)+
                }
            }
        }

        impl Record {
            /// Reads the record with this id as its kind wrote it.
            pub fn read<'de, D: Deserializer<'de>>(id: &RecordId, from: D) -> Result<Self, D::Error> {
                match id {
                    $(RecordId::$Name(id) => {
                        let mut record = Box::<$Name>::deserialize(from)?;
                        record.id = id.clone();
                        Ok(Self::$Name(record))
                    })+
                }
            }

            /// The same state without its id.
            pub(crate) fn without_id(mut self) -> Self {
                match &mut self {
                    $(Self::$Name(record) => record.id = $Id::new(""),)+
                }
                self
            }

            /// The same state under this id, if it is of that kind.
            pub(crate) fn with_id(mut self, id: &RecordId) -> Result<Self, Misfold> {
                match (&mut self, id) {
                    $((Self::$Name(record), RecordId::$Name(id)) => record.id = id.clone(),)+
                    (_, _) => return Err(OTHER_KIND),
                }
                Ok(self)
            }

            /// The record's id.
            pub fn id(&self) -> RecordId {
                match self {
                    $(Self::$Name(record) => record.id.clone().into(),)+
                }
            }

            /// What kind of record it is.
            pub const fn kind(&self) -> RecordKind {
                match self {
                    $(Self::$Name(_) => RecordKind::$Name,)+
                }
            }

            /// When anything last happened to it.
            pub fn updated_at(&self) -> Timestamp {
                match self {
                    $(Self::$Name(record) => record.updated_at,)+
                }
            }

            /// What the agenda must know of it.
            pub fn schedule(&self, retention: Retention) -> Attention {
                match self {
                    $(Self::$Name(record) => record.attention(retention),)+
                }
            }

            /// What time alone brings about, for whoever took it because it was due.
            pub fn due_command(
                &self,
                retention: Retention,
                jitter: impl FnOnce() -> Jitter,
                now: Timestamp,
            ) -> Option<Command> {
                match self {
                    $(Self::$Name(record) => record.due_command(retention, jitter, now).map(Command::$Name),)+
                }
            }

            /// The command that moves its timers.
            pub fn move_timers(&self, by_micros: i64) -> Command {
                match self {
                    $(Self::$Name(_) => $Command::MoveTimers { by_micros }.into(),)+
                }
            }
        }

        impl Deref for Record {
            type Target = dyn Kind;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$Name(record) => &**record,)+
                }
            }
        }

        impl Command {
            /// Whether it asks for a new record: refused first when too much waits.
            pub fn is_new_work(&self) -> bool {
                match self {
                    $(Self::$Name(command) => command.is_new_work(),)+
                }
            }

            /// Whether only the holder of the claim may order it.
            pub fn needs_claim(&self) -> bool {
                match self {
                    $(Self::$Name(command) => command.needs_claim(),)+
                }
            }

            /// Whether it moves the timers of a record.
            pub fn is_move(&self) -> bool {
                matches!(self, $(Self::$Name($Command::MoveTimers { .. }))|+)
            }
        }

        impl Fact {
            /// Reads a fact of this kind of record as that kind wrote it.
            pub fn read<'de, D: Deserializer<'de>>(kind: RecordKind, from: D) -> Result<Self, D::Error> {
                match kind {
                    $(RecordKind::$Name => $Fact::deserialize(from).map(Self::$Name),)+
                }
            }

            /// Reads a checkpoint of this kind of record.
            pub fn read_checkpoint<'de, D: Deserializer<'de>>(
                kind: RecordKind,
                from: D,
            ) -> Result<Self, D::Error> {
                let checkpoint = match kind {
                    $(RecordKind::$Name => Written::<$Name>::deserialize(from)?.checkpointed.of_any_kind(),)+
                };
                Ok(Self::Checkpointed { checkpointed: Box::new(checkpoint) })
            }

            /// The name and version under which it is stored.
            pub fn kind_name(&self) -> &'static str {
                match self {
                    $(Self::$Name(fact) => fact.kind_name(),)+
                    Self::Checkpointed { checkpointed } => match checkpointed.state.kind() {
                        $(RecordKind::$Name => concat!($word, ".checkpointed/1"),)+
                    },
                }
            }

            /// By how much it moved the timers of its record, if it did.
            pub fn moved_by(&self) -> Option<i64> {
                match self {
                    $(Self::$Name($Fact::TimersMoved { by_micros }) => Some(*by_micros),)+
                    $(Self::$Name(_) => None,)+
                    Self::Checkpointed { .. } => None,
                }
            }

            /// What it takes away.
            pub fn removal(&self) -> Removal {
                match self {
                    $(Self::$Name(fact) => fact.removal(),)+
                    Self::Checkpointed { .. } => Removal::OlderFacts,
                }
            }
        }

        $(
            impl Record {
                #[doc = concat!("The state, if it is of the kind `", $word, "`.")]
                pub fn $as_kind(&self) -> Option<&$Name> {
                    if let Self::$Name(record) = self { Some(record) } else { None }
                }
            }

            impl RecordId {
                #[doc = concat!("The id, if it is of the kind `", $word, "`.")]
                pub fn $as_kind(&self) -> Option<&$Id> {
                    if let Self::$Name(id) = self { Some(id) } else { None }
                }
            }

            impl Command {
                #[doc = concat!("The order, if it is to the kind `", $word, "`.")]
                pub fn $as_kind(&self) -> Option<&$Command> {
                    if let Self::$Name(command) = self { Some(command) } else { None }
                }
            }

            impl Fact {
                #[doc = concat!("The fact, if it is of the kind `", $word, "`.")]
                pub fn $as_kind(&self) -> Option<&$Fact> {
                    if let Self::$Name(fact) = self { Some(fact) } else { None }
                }
            }

            impl From<$Name> for Record {
                fn from(record: $Name) -> Self {
                    Self::$Name(Box::new(record))
                }
            }

            impl From<$Id> for RecordId {
                fn from(id: $Id) -> Self {
                    Self::$Name(id)
                }
            }

            impl From<$Command> for Command {
                fn from(command: $Command) -> Self {
                    Self::$Name(command)
                }
            }

            impl From<$Fact> for Fact {
                fn from(fact: $Fact) -> Self {
                    Self::$Name(fact)
                }
            }
        )+
    };
}
pub(super) use records;
