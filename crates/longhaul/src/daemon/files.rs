//! What a daemon leaves in its data directory for the other commands: `daemon.json`, `admin.token` and `callback.key`,
//! for its user alone; beside a shared database `node.id` instead of the key, which is in the database. Whose directory it is, says `whose.rs`.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use domain::Digest;
use engine::Engine;
use server::Secret;
use store::Token;

use crate::client::DaemonFile;
use crate::daemon::full_disk;

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const NODE_ID_DIGITS: usize = 16;
/// `daemon.json` is padded to this, so that any other fits into its bytes.
const DAEMON_FILE_BYTES: usize = 256;

/// Makes the directory if it is not there; its full path.
pub fn make_data_dir(data_dir: &Path) -> Result<PathBuf> {
    let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(data_dir);
    made.with_context(|| format!("cannot make the data directory {}", data_dir.display()))?;
    Ok(data_dir.canonicalize()?)
}

/// Writes `daemon.json`. On a full disk the bytes of the last one are used again, which need no room.
pub(super) fn write_daemon_file(data_dir: &Path, daemon: &DaemonFile) -> Result<()> {
    let text = format!("{:DAEMON_FILE_BYTES$}", serde_json::to_string(daemon)?);
    match write(&DaemonFile::path(data_dir), &text) {
        Err(error) if full_disk::is_full(&error) => overwrite_daemon_file(data_dir, &text).map_err(|_| error),
        written => written,
    }
}

/// Never in place: a reader must not see half of it.
fn overwrite_daemon_file(data_dir: &Path, text: &str) -> std::io::Result<()> {
    let (path, spare) = (DaemonFile::path(data_dir), spare_daemon_file(data_dir));
    let _ = fs::remove_file(path.with_extension("new"));
    if path.exists() {
        fs::rename(&path, &spare)?;
    }
    let mut file = OpenOptions::new().write(true).open(&spare)?;
    if file.metadata()?.len() < text.len() as u64 {
        return Err(ErrorKind::StorageFull.into());
    }
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_all()?;
    fs::rename(&spare, &path)
}

fn spare_daemon_file(data_dir: &Path) -> PathBuf {
    data_dir.join("daemon.spare")
}

/// Whoever looks for the daemon finds that there is none. Its bytes are kept for a start on a full disk.
pub(super) fn remove_daemon_file(data_dir: &Path) {
    let path = DaemonFile::path(data_dir);
    match fs::rename(&path, spare_daemon_file(data_dir)) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => crate::log::say!("longhaul: {} is left: {error}", path.display()),
    }
}

/// The key that callback addresses are signed with, if this directory holds one.
pub fn kept_callback_key(data_dir: &Path) -> Result<Option<[u8; 32]>> {
    let path = callback_key_path(data_dir);
    let text = read_if_there(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let Some(text) = text else { return Ok(None) };
    let no_key = || format!("{} holds no key; remove it to have a new one made", path.display());
    Ok(Some(Digest::from_hex(text.trim()).with_context(no_key)?.0))
}

/// Makes that key on the first start; it is kept for as long as the store.
pub(super) fn make_callback_key(data_dir: &Path) -> Result<[u8; 32]> {
    let key = new_key()?;
    write_callback_key(data_dir, key)?;
    Ok(key)
}

/// Keeps that key, instead of any that is there.
pub fn write_callback_key(data_dir: &Path, key: [u8; 32]) -> Result<()> {
    write(&callback_key_path(data_dir), &Digest(key).to_string())
}

/// A key that nobody has.
pub(super) fn new_key() -> Result<[u8; 32]> {
    // Hashed: what is random in an access token is random enough for a key.
    Ok(store::sha256(Secret::generate()?.reveal().as_bytes()).0)
}

pub(super) fn callback_key_path(data_dir: &Path) -> PathBuf {
    data_dir.join("callback.key")
}

/// The name of this node among those that share a database: made on the first start, and kept with the data directory.
pub(super) fn node_id(data_dir: &Path) -> Result<String> {
    let path = data_dir.join("node.id");
    let text = read_if_there(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    if let Some(text) = text {
        let id = text.trim();
        if id.len() == NODE_ID_DIGITS && id.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Ok(id.to_owned());
        }
        bail!("{} holds no name of a node; remove it to have a new one made", path.display());
    }
    let digest = Digest(new_key()?).to_string();
    let id = &digest[..NODE_ID_DIGITS];
    write(&path, id)?;
    Ok(id.to_owned())
}

/// Makes the administrator's token on the first start, and again when its file is gone: whoever owns the directory owns the daemon.
pub(super) async fn keep_admin_token(engine: &Engine, data_dir: &Path) -> Result<()> {
    let path = DaemonFile::token_path(data_dir);
    let secret = match server::first_admin(engine).await? {
        Some(secret) => secret,
        None if path.exists() => return Ok(()),
        None => another_admin(engine).await?,
    };
    write(&path, secret.reveal())
}

async fn another_admin(engine: &Engine) -> Result<Secret> {
    let secret = Secret::generate()?;
    let token = Token {
        id: format!("token-{:032x}", engine.ids().next()),
        sha256: secret.sha256(),
        name: "administrator, made because admin.token was missing".to_owned(),
        role: api::Role::Admin.as_str().to_owned(),
        scopes: vec!["exec".to_owned()],
        circle: None,
        peer_id: None,
        created_at: engine.clock().now(),
        revoked_at: None,
    };
    engine.store().keep_token(token).await?;
    Ok(secret)
}

pub(super) fn read_if_there(path: &Path) -> std::io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Whole or not at all: a reader never sees half of it, and what is written stays.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let unwritten = || format!("cannot write {}", path.display());
    let beside = path.with_extension("new");
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(&beside)
        .with_context(unwritten)?;
    writeln!(file, "{text}").with_context(unwritten)?;
    file.sync_all().with_context(unwritten)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let named = fs::rename(&beside, path).and_then(|()| File::open(directory)?.sync_all());
    named.with_context(unwritten)
}
