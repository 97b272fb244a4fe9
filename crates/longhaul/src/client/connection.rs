//! Where the daemon is and who asks: flags, then the environment, then the files that the daemon left in its data directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::Client;
use crate::exit::{Failed, UNREACHABLE};

/// The default of every `--data-dir`.
pub const DATA_DIR: &str = "./longhaul-data";

/// Of the three in `--help`; each names it, so that what follows them does not stand under it too.
const HEADING: &str = "Connection";

/// Where the daemon is and who asks.
#[derive(Args, Clone, Debug)]
pub struct Connection {
    /// The daemon's address; else it is found in the data directory
    #[arg(long, env = "LONGHAUL_URL", value_name = "URL", global = true, help_heading = HEADING)]
    pub url: Option<String>,
    /// The access token; else the administrator's in the data directory
    #[arg(long, env = "LONGHAUL_TOKEN", hide_env_values = true, value_name = "TOKEN", global = true, help_heading = HEADING)]
    pub token: Option<String>,
    /// The daemon's data directory
    #[arg(long, default_value = DATA_DIR, env = "LONGHAUL_DATA_DIR", value_name = "DIR", global = true, help_heading = HEADING)]
    pub data_dir: PathBuf,
}

// Not documented: clap would take that for the help of every verb that has verbs of its own, which all ask a daemon.
#[derive(Args)]
pub struct AtDaemon<V: Subcommand> {
    #[command(flatten)]
    pub connection: Connection,
    #[command(subcommand)]
    pub verb: V,
}

/// What a running daemon says of itself in `daemon.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonFile {
    pub url: String,
    pub pid: u32,
}

impl DaemonFile {
    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("daemon.json")
    }

    /// Where the administrator's token is.
    pub fn token_path(data_dir: &Path) -> PathBuf {
        data_dir.join("admin.token")
    }

    /// Where a demo remembers its address: a data directory that has one needs what only a demo has.
    pub fn demo_path(data_dir: &Path) -> PathBuf {
        data_dir.join("demo.address")
    }

    pub fn read(data_dir: &Path) -> Result<Self> {
        let path = Self::path(data_dir);
        let text = std::fs::read_to_string(&path)?;
        serde_json::from_str(&text).with_context(|| format!("{} cannot be read", path.display()))
    }
}

impl Connection {
    /// The client for it. Reads the files anew, so that a daemon that was started again is found again.
    pub fn client(&self) -> Result<Client> {
        let found = DaemonFile::read(&self.data_dir);
        let (url, hint) = match (&self.url, &found) {
            (Some(url), _) => (url.clone(), "check --url or LONGHAUL_URL".to_owned()),
            (None, Ok(daemon)) => (daemon.url.clone(), self.may_be_dead(daemon)),
            (None, Err(error)) => return Err(self.nowhere(error).into()),
        };
        let url = url.trim_end_matches('/').to_owned();
        if !url.starts_with("http://") {
            return Err(Failed::usage(format!(
                "{url:?} does not begin with http://; reach a daemon elsewhere through a tunnel"
            ))
            .into());
        }
        // The administrator's token is for the daemon that made it, not for whatever else --url names.
        let at_home = found.is_ok_and(|daemon| daemon.url == url);
        let token = match &self.token {
            Some(token) => Some(token.clone()),
            None if at_home => std::fs::read_to_string(DaemonFile::token_path(&self.data_dir))
                .ok()
                .map(|text| text.trim().to_owned()),
            None => None,
        };
        Ok(Client::new(url, token, hint))
    }

    fn may_be_dead(&self, daemon: &DaemonFile) -> String {
        let (data_dir, pid) = (self.data_dir.display(), daemon.pid);
        let what_it_had = if self.is_of_a_demo() { "" } else { " and the --config and --connector it had" };
        format!(
            "{data_dir}/daemon.json names process {pid}, which may have been killed; start it again with `{}`{what_it_had}",
            self.start()
        )
    }

    /// What starts a daemon on this data.
    fn start(&self) -> String {
        let verb = if self.is_of_a_demo() { "demo" } else { "serve" };
        format!("longhaul {verb} --data-dir {}", self.data_dir.display())
    }

    fn is_of_a_demo(&self) -> bool {
        DaemonFile::demo_path(&self.data_dir).exists()
    }

    fn nowhere(&self, error: &anyhow::Error) -> Failed {
        let data_dir = self.data_dir.display();
        let message = format!(
            "cannot connect: no daemon has left its address in {data_dir} ({error}); start one with `{}`, or give --url",
            self.start()
        );
        Failed { code: UNREACHABLE, message }
    }
}
