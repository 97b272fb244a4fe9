#![doc = include_str!("../LANGUAGE.md")]
