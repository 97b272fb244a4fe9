//! The command line against the real binary: every daemon in a directory of its own, on a port of its own, ended by its guard.

mod backends;
mod broken_disk;
mod called_back;
mod commands;
mod config;
mod connection;
mod demo;
mod encrypted_database;
mod exit_codes;
mod flags;
mod full_database;
mod given;
mod handed_over;
mod hasty_service;
mod jobs;
mod kills;
mod outside;
mod peers;
mod postgres;
mod redaction;
mod refused_databases;
mod shared_artifacts;
mod shown_outside;
mod starting;
mod stopping;
mod tokens;
