//! The contract of the store: what may be committed and read, and `MemoryStore`, the model of it.
//!
//! A commit is the unit of atomicity and may span records. The ledger of facts is the truth; views, agenda and
//! bodies are written with the facts, in one transaction. Nothing here decides what may happen to a record.

mod agenda;
mod artifacts;
mod body_check;
mod checksum;
mod clock;
mod codec;
mod commit;
mod contract;
mod error;
mod facts;
mod failpoint;
mod memory;
mod query;
mod records;
mod requests;
mod sweep;
mod tables;
mod take;
mod upcast;
mod view;
pub(crate) use tables::{asks, keys, nodes, peers, plugin_state, tokens};

pub use agenda::{AgendaRow, Taken};
pub use artifacts::{ARTIFACT_CHUNK_BYTES, ArtifactName, MAX_SHARED_ARTIFACT_BYTES, SharedArtifacts};
pub use asks::{AskQuery, Direction, too_many_asks};
pub use body_check::{BodyDamage, check_body, damaged_body_reads};
pub use checksum::{FactText, body_ref, sha256};
pub use clock::{Adopted, CLOCK, Correction, DuePlace, Sight, StoreClock, passes};
pub use codec::{CodecError, decode_fact, encode_fact, fact_kind};
pub use commit::{Change, Commit, Committed, NewBody, NewFact, Urgency, limits};
pub use contract::{ReadAnswer, ReadRequest, Reply, SideWrite, Store};
pub use domain::{Checksum, Removal};
pub use error::StoreError;
pub use facts::{FactId, StoredFact};
pub use failpoint::failpoint;
pub use keys::{IdempotencyKey, KeptKey};
pub use memory::{KeptAsk, KeptPlugin, MemoryStore, Tables};
pub use nodes::{
    MAX_NODE_EXECUTORS, MAX_NODE_TEXT_BYTES, MAX_NODES, Node, Pulse, Ready, SILENT_AFTER_SECONDS,
    SharedStore, Taking,
};
pub use peers::{MAX_SIGHTINGS, OfCircle, PeerPage, PeerQuery, decode_words, encode_words, too_many_peers};
pub use plugin_state::{
    KEPT_PLUGIN_FACTS, KeptPluginFact, MAX_NEW_PLUGIN_FACTS, MAX_PLUGIN_STATE_BYTES, MAX_PLUGIN_STATES,
    PluginFact, PluginState, PluginStateChange,
};
pub use query::{
    Cursor, Head, JobFilter, JobQuery, Leading, Loaded, OpenJobs, OrphanCursor, Page, PageWalk, Remembered,
};
pub use records::{RecordCursor, RecordPage, RecordQuery};
pub use requests::{ClaimOutcome, ClaimRequest};
pub use sweep::Sweep;
pub use take::{Footing, Lane, Take};
pub use tokens::{MAX_TOKEN_SCOPES, MAX_TOKEN_TEXT_CHARS, MAX_TOKENS, Token};
pub use upcast::lift as lift_fact;
pub use view::{
    JobColumns, OperationColumns, VIEW_FORMAT, decode_sealed_view, decode_view, encode_view, seal_view,
};
