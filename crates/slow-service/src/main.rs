//! `slow-service [--listen ADDRESS] [--state FILE] [--speed N]`: the scripted service, for hand use.

fn main() {}
