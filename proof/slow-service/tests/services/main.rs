//! The services, seen over a raw client: the honest way, every animal of the zoo, callbacks, restarts, and the two reference
//! services on their own state.

mod answers;
mod callbacks;
mod cancels;
mod catalogue;
mod delivery;
mod given;
mod honest;
mod redaction;
mod restarts;
mod schemas;
mod starts;
mod states;
