#!/bin/sh
# Builds the entrypoint that the manifest names.
set -eu
cd "$(dirname "$0")"
exec rustc --edition 2024 -O -o run main.rs
