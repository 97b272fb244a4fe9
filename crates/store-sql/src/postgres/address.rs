//! Where a database is: `postgres://user:password@host:port/database?sslmode=…`, read once and never shown with its password.
//!
//! `sslmode` means less here than elsewhere, so that nobody is encrypted without knowing to whom: `disable` is plain,
//! `require` and `verify-full` are encrypted and verified (by `sslrootcert` if given, else by the system's certificates).
//! Without one, a server on this machine is spoken to plainly and any other under `require`. `allow`, `prefer` and
//! `verify-ca` are refused.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode};
use url::Url;

use crate::OpenError;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A server that has gone without a word is noticed after this long.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);

/// Where a database is, and how it is reached.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(super) config: tokio_postgres::Config,
    pub(super) encryption: Encryption,
    shown: String,
}

/// Whether what is said can be read on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    /// It can.
    Plain,
    /// It cannot, and the server has shown that it is the one that was named.
    Verified {
        /// Who vouches for the server; the system's own if nothing is said.
        roots: Option<PathBuf>,
    },
}

impl PostgresAddress {
    /// Whether a text is meant as such an address.
    pub fn looks_like(text: &str) -> bool {
        ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, OpenError> {
        if !Self::looks_like(text) {
            return Err(mistake("it begins with postgres:// or postgresql://"));
        }
        let mut url = Url::parse(text).map_err(mistake)?;
        let mut sslmode = None;
        let mut roots = None;
        let mut others = Vec::new();
        for (name, value) in url.query_pairs() {
            match &*name {
                "sslmode" => sslmode = Some(value.into_owned()),
                "sslrootcert" => roots = Some(PathBuf::from(&*value)),
                _ => others.push((name.into_owned(), value.into_owned())),
            }
        }
        url.set_query(None);
        if !others.is_empty() {
            url.query_pairs_mut().extend_pairs(&others);
        }
        // A blank in a query is written as a plus sign, which the driver takes for itself.
        let plain = url.as_str().replace('+', "%20");
        let mut config: tokio_postgres::Config = plain.parse().map_err(mistake)?;
        let encryption = match sslmode.as_deref() {
            None if is_here(&config) && roots.is_none() => Encryption::Plain,
            Some("disable") => Encryption::Plain,
            None | Some("require" | "verify-full") => Encryption::Verified { roots },
            Some(other) => {
                let told = "use disable (plain), or require or verify-full (encrypted and verified)";
                return Err(mistake(format_args!("sslmode={other} is not supported; {told}")));
            }
        };
        config.ssl_mode(match encryption {
            Encryption::Plain => SslMode::Disable,
            Encryption::Verified { .. } => SslMode::Require,
        });
        config.connect_timeout(CONNECT_WITHIN).tcp_user_timeout(SILENCE_LIMIT).keepalives_idle(SILENCE_LIMIT);
        if config.get_application_name().is_none() {
            config.application_name("longhaul");
        }
        Ok(Self { shown: shown(&config), config, encryption })
    }

    /// The database's name, as far as it was given.
    pub(crate) fn database(&self) -> &str {
        self.config.get_dbname().or(self.config.get_user()).unwrap_or_default()
    }
}

impl std::fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

impl std::fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Without the password.
fn shown(config: &tokio_postgres::Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(place, host)| {
            let ports = config.get_ports();
            let port = ports.get(place).or(ports.first()).copied().unwrap_or(5_432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        })
        .collect();
    let user = config.get_user().map_or(String::new(), |user| format!("{user}@"));
    format!("postgres://{user}{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

fn is_here(config: &tokio_postgres::Config) -> bool {
    let addresses_are_here = config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback);
    let hosts_are_here = config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    });
    addresses_are_here && hosts_are_here
}

fn mistake(reason: impl std::fmt::Display) -> OpenError {
    OpenError::Address { reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encryption(address: &str) -> Encryption {
        PostgresAddress::parse(address).unwrap().encryption
    }

    #[test]
    fn server_on_this_machine_is_spoken_to_plainly_and_any_other_is_verified() {
        for here in
            ["postgres://a@127.0.0.1:5433/x", "postgresql://localhost/x", "postgres://a@%2Frun%2Fpg/x"]
        {
            assert_eq!(encryption(here), Encryption::Plain, "{here}");
        }
        assert_eq!(encryption("postgres://a@db.example/x"), Encryption::Verified { roots: None });
        assert_eq!(encryption("postgres://a@db.example/x?sslmode=disable"), Encryption::Plain);
        let roots = Some(PathBuf::from("/etc/ca.pem"));
        let named = "postgres://a@localhost/x?sslmode=verify-full&sslrootcert=/etc/ca.pem";
        assert_eq!(encryption(named), Encryption::Verified { roots });
    }

    #[test]
    fn modes_that_would_not_verify_are_refused_by_name() {
        for mode in ["allow", "prefer", "verify-ca", "x"] {
            let refused = PostgresAddress::parse(&format!("postgres://a@b/c?sslmode={mode}")).unwrap_err();
            assert_eq!(refused.code(), "database_address");
            assert!(refused.to_string().contains(mode), "{refused}");
        }
    }

    #[test]
    fn password_is_never_shown() {
        let address = PostgresAddress::parse("postgres://ada:secret@127.0.0.1:5433/work").unwrap();
        assert_eq!(address.to_string(), "postgres://ada@127.0.0.1:5433/work");
        assert_eq!(format!("{address:?}"), "postgres://ada@127.0.0.1:5433/work");
    }

    #[test]
    fn settings_of_a_session_pass_with_their_blanks() {
        let address =
            PostgresAddress::parse("postgres://a@127.0.0.1/x?options=-c%20search_path%3Dsome").unwrap();
        assert_eq!(address.config.get_options(), Some("-c search_path=some"));
    }
}
