//! Connectors: the recipes against their recorded exchanges, and connectors over the whole engine against a service on a real socket.

mod recipes;
