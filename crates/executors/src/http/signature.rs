//! Signatures of connector files: an operator who lists public keys has no file loaded that none of them has signed.
//!
//! A signature is Ed25519 over the bytes of the file, in base64, in a file of its own beside it (`printing.yaml.sig`). Keys are those of
//! openssl. It says who has written a file and not when: an older version with its signature is as good as the newest. What a file
//! refers to (secrets, certificates) is not signed with it.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::load::LIMITS;
use config_file::Mistake;

const KEY_BYTES: usize = 32;
/// What stands before the 32 bytes of a public key in the form of openssl (`SubjectPublicKeyInfo`).
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// What stands before the 32 bytes of a private key in the form of openssl (PKCS #8).
const PRIVATE_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// The public keys of which one must have signed a connector file; without any no signature is looked at.
#[derive(Clone, Debug, Default)]
pub struct Signers(Vec<[u8; KEY_BYTES]>);

impl Signers {
    /// Adds a public key: the base64 of its 32 bytes, or of the longer form of openssl.
    pub fn add(&mut self, key: &str) -> Result<(), &'static str> {
        let decoded = STANDARD.decode(key.trim()).unwrap_or_default();
        let bytes = decoded.strip_prefix(&PUBLIC_PREFIX).unwrap_or(&decoded);
        self.0.push(bytes.try_into().map_err(|_| "an Ed25519 public key has 32 bytes, in base64")?);
        Ok(())
    }

    /// Refuses a file whose text none of the keys has signed.
    pub(super) fn check(&self, path: &Path, text: &str) -> Result<(), Mistake> {
        if self.0.is_empty() {
            return Ok(());
        }
        let beside = signature_path(path);
        if !beside.exists() {
            let told = format!("is not signed: connector_keys is set, and there is no {}", beside.display());
            return Err(Mistake::somewhere(path.display(), told));
        }
        let signature = STANDARD.decode(LIMITS.text_of(&beside)?.trim()).unwrap_or_default();
        let signed = |key: &[u8; KEY_BYTES]| {
            UnparsedPublicKey::new(&ED25519, key).verify(text.as_bytes(), &signature).is_ok()
        };
        if self.0.iter().any(signed) {
            return Ok(());
        }
        let told = format!(
            "is not as it was signed: {} is no signature of it by a key of connector_keys",
            beside.display()
        );
        Err(Mistake::somewhere(path.display(), told))
    }
}

/// A private key, with which an operator signs.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// A new key, and the text of its file.
    pub fn generate() -> Result<(Self, String), &'static str> {
        let mut seed = [0; KEY_BYTES];
        SystemRandom::new().fill(&mut seed).map_err(|_| "the system has no randomness")?;
        let pem =
            format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", STANDARD.encode([&PRIVATE_PREFIX[..], &seed].concat()));
        Ok((Self::from_pem(&pem)?, pem))
    }

    /// Reads the text of a key's file.
    pub fn from_pem(pem: &str) -> Result<Self, &'static str> {
        let refused = "not an Ed25519 private key in PEM; `longhaul connector keygen` makes one";
        let body =
            pem.trim().strip_prefix(PEM_BEGIN).and_then(|rest| rest.strip_suffix(PEM_END)).ok_or(refused)?;
        let body: String = body.split_whitespace().collect();
        let decoded = STANDARD.decode(body).map_err(|_| refused)?;
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(&decoded).map(Self).map_err(|_| refused)
    }

    /// Its public key, as `connector_keys` takes it.
    pub fn public_key(&self) -> String {
        STANDARD.encode(self.0.public_key())
    }

    /// The content of the file with the signature of these bytes.
    pub fn sign(&self, bytes: &[u8]) -> String {
        format!("{}\n", STANDARD.encode(self.0.sign(bytes)))
    }
}

/// Where the signature of a file is.
pub fn signature_path(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".sig");
    PathBuf::from(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with `openssl genpkey -algorithm ed25519`, `openssl pkey -pubout` and `openssl pkeyutl -sign -rawin`.
    const OPENSSL_KEY: &str = "MC4CAQAwBQYDK2VwBCIEIKc0hkAxkRH80g7AyNuBMgQ8MckBlgUvZ7MUCsBIOTgt";
    const OPENSSL_PUBLIC: &str = "MCowBQYDK2VwAyEAV9DkzmyvulspCgPSl8F7QPcNCslPyhl4xRO7tqAYjRY=";
    const OPENSSL_SIGNATURE: &str =
        "neukMTRyB3dCsy32qmQaT4vfdbEFtN8x2NXBDBajAPMy6p8F1PNa0LDFsRV1Aw//uLngj1+mXmoJY4ZKY6OBBA==";

    #[test]
    fn keys_and_signatures_of_openssl_are_understood() {
        let key = SigningKey::from_pem(&format!("{PEM_BEGIN}\n{OPENSSL_KEY}\n{PEM_END}\n")).unwrap();
        assert_eq!(key.sign(b"name: press\n").trim(), OPENSSL_SIGNATURE);
        let (mut long, mut short) = (Signers::default(), Signers::default());
        long.add(OPENSSL_PUBLIC).unwrap();
        short.add(&key.public_key()).unwrap();
        assert_eq!(long.0, short.0);
    }

    #[test]
    fn generated_key_is_read_back_and_what_is_no_key_is_refused() {
        let (key, pem) = SigningKey::generate().unwrap();
        assert_eq!(SigningKey::from_pem(&pem).unwrap().public_key(), key.public_key());
        for text in ["", "key", PEM_BEGIN, &pem.replace("PRIVATE", "PUBLIC"), &pem[..60]] {
            assert!(SigningKey::from_pem(text).is_err(), "{text:?}");
        }
        for text in ["", "key", &key.public_key()[4..], &key.sign(b"")] {
            assert!(Signers::default().add(text).is_err(), "{text:?}");
        }
    }
}
