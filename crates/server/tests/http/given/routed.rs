//! Plugins that are executors of these tests, and endpoints for webhooks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use domain::breaker::BreakerPolicy;
use executors::plugin::{Discovered, Found, Manifest, PluginSettings, Plugins};
use server::{Endpoint, SignedTime, Webhooks};

/// What webhooks are signed with.
pub const HOOK_KEY: &[u8] = b"a key for webhooks";

/// `echo`, `fails` and `stays` are plugins; `ghost` is one that no executor does.
pub fn plugins() -> Arc<Plugins> {
    let mut discovered = Discovered::default();
    for name in ["echo", "fails", "stays", "ghost"] {
        let text = format!(
            "name: {name}\nversion: 0.1.0\nprotocol: 2\nentrypoint: run\ncommands:\n\
             - {{ name: poll, type: read, input_schema: {{ station: string }} }}\n\
             - {{ name: handle, type: write }}\n"
        );
        let manifest = Manifest::parse("manifest.yaml", &text).expect("it is a manifest");
        let found = Found { directory: PathBuf::new(), entrypoint: PathBuf::new(), manifest };
        discovered.plugins.insert(name.to_owned(), found);
    }
    let breaker = BreakerPolicy { threshold: 3, ..BreakerPolicy::default() };
    let settings =
        BTreeMap::from([("fails".to_owned(), PluginSettings { breaker, ..PluginSettings::default() })]);
    Arc::new(Plugins::assemble(&discovered, &settings).0)
}

/// `plain`, `timed` and `named`, each at a path of its own name.
pub fn webhooks() -> Webhooks {
    let time = || Some(SignedTime { header: "x-time".to_owned(), max_age_seconds: 300 });
    let endpoint = |name: &str, time, dedupe_header: Option<&str>| Endpoint {
        name: name.to_owned(),
        path: name.to_owned(),
        event: "hook.came".to_owned(),
        key: HOOK_KEY.to_vec(),
        signature_header: "x-signature".to_owned(),
        time,
        max_body_bytes: 1_000,
        dedupe_header: dedupe_header.map(str::to_owned),
        circle: None,
    };
    let mut webhooks = Webhooks::default();
    for one in [
        endpoint("plain", None, None),
        endpoint("timed", time(), None),
        endpoint("named", time(), Some("x-id")),
    ] {
        webhooks.add(one).expect("it can be used");
    }
    webhooks
}
