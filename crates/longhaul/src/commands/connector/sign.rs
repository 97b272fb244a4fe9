//! `longhaul connector sign` and `keygen`: the operator's side of signed connectors. The daemon never has a private key.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use executors::http::{Connector, SigningKey, signature_path};

use crate::show::say;

const FILE_MODE: u32 = 0o600;

/// Writes the signature of a connector beside it. What the daemon could not read is not signed.
pub(super) fn sign(file: &Path, key: &Path) -> Result<()> {
    let pem = fs::read_to_string(key).with_context(|| format!("cannot read {}", key.display()))?;
    let key = SigningKey::from_pem(&pem).map_err(|told| anyhow!("{}: {told}", key.display()))?;
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Connector::parse(&file.display().to_string(), &text)?;
    let beside = signature_path(file);
    fs::write(&beside, key.sign(text.as_bytes()))
        .with_context(|| format!("cannot write {}", beside.display()))?;
    say(format_args!("{} is signed by {}: {}", file.display(), key.public_key(), beside.display()));
    Ok(())
}

/// Writes a new private key, and prints the public one.
pub(super) fn keygen(out: &Path) -> Result<()> {
    let (key, pem) = SigningKey::generate().map_err(|told| anyhow!(told))?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(out)
        .with_context(|| format!("cannot write {}", out.display()))?;
    file.write_all(pem.as_bytes())?;
    file.sync_all()?;
    say(format_args!("connector_keys: [{}]", key.public_key()));
    Ok(())
}
