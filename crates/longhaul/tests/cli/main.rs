//! The command line against the real binary: every daemon in a directory of its own, on a port of its own, ended by its guard.

#[path = "../support/disk.rs"]
mod disk;

mod agentic_routes;
mod backends;
mod bench;
mod broken_disk;
mod called_back;
mod commands;
mod config;
mod connection;
mod demo;
mod drill;
mod ductile;
mod encrypted_database;
mod exit_codes;
mod flags;
mod full_database;
mod given;
mod handed_over;
mod hasty_service;
mod jobs;
mod killed_pipelines;
mod kills;
mod one_at_a_time;
mod outside;
mod peers;
mod pipelines;
mod plugin_files;
mod plugins;
mod postgres;
mod proof;
mod redaction;
mod refused_databases;
mod repeated_creates;
mod resident_backends;
mod routed;
mod shared_artifacts;
mod shown_outside;
mod starting;
mod stopping;
mod tokens;
mod workspaces;
