//! Whom secure connections trust: the system's certificates, and those that the operator adds. Verification cannot be turned off.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::OutboundError;

/// The trust of one client.
pub(super) fn trust(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, OutboundError> {
    let failed = |what: String| OutboundError::Tls { what };
    let mut roots = RootCertStore::empty();
    // A system without certificates reaches no https, and says so when it is asked to.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let unusable = |why: String| failed(format!("the certificates of {}: {why}", path.display()));
        let certificates =
            CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
        let mut any = false;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
            roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
            any = true;
        }
        if !any {
            return Err(unusable("there are none".to_owned()));
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}
