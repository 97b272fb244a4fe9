//! Encryption towards a server, by rustls: always verified.

use std::sync::Arc;

use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::address::{Encryption, PostgresAddress};
use crate::OpenError;

/// How to encrypt, if the address asks for it.
pub(super) fn connector(address: &PostgresAddress) -> Result<Option<MakeRustlsConnect>, OpenError> {
    let Encryption::Verified { roots } = &address.encryption else { return Ok(None) };
    let mistake = |reason: String| OpenError::Address { reason };
    let certificates: Vec<CertificateDer<'static>> = match roots {
        Some(path) => CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|error| mistake(format!("sslrootcert {}: {error}", path.display())))?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates);
    if store.is_empty() {
        let told =
            "no certificate vouches for any server; name one with sslrootcert=FILE, or use sslmode=disable";
        return Err(mistake(told.to_owned()));
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| mistake(error.to_string()))?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(Some(MakeRustlsConnect::new(config)))
}
