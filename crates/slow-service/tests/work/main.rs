//! The scripted service, seen over a raw client: the honest way, every animal of the zoo, callbacks, restarts.

mod answers;
mod callbacks;
mod cancels;
mod catalogue;
mod given;
mod honest;
mod restarts;
mod starts;
mod states;
