//! How an artifact reaches a target: one adapter per target.

use std::fmt::Debug;
use std::path::PathBuf;
use std::pin::Pin;

/// What is sent.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// The same for every attempt: a target that has it already takes it again without harm.
    pub delivery_id: String,
    /// The target's name in the plan.
    pub target: String,
    /// `sha256:` and hex digits.
    pub digest: String,
    /// The artifact, when it came with the envelope.
    pub bytes: Option<Vec<u8>>,
    /// Where it is, when it did not.
    pub artifact_ref: Option<String>,
}

/// What became of one sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The target has it.
    Delivered,
    /// Not now; perhaps later.
    Transient(String),
    /// Never.
    Permanent(String),
}

/// Sends parcels to one target.
pub trait Adapter: Debug + Send + Sync {
    /// Sends it; may be called again with the same parcel.
    fn send<'a>(&'a self, parcel: &'a Parcel) -> Pin<Box<dyn Future<Output = Sent> + Send + 'a>>;
}

/// A directory as a target: one file per delivery.
#[derive(Clone, Debug)]
pub struct DirectoryAdapter {
    directory: PathBuf,
}

impl DirectoryAdapter {
    /// Sends into that directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }
}

impl Adapter for DirectoryAdapter {
    fn send<'a>(&'a self, parcel: &'a Parcel) -> Pin<Box<dyn Future<Output = Sent> + Send + 'a>> {
        Box::pin(async {
            let Some(bytes) = &parcel.bytes else {
                return Sent::Permanent("a directory takes bytes, not references".to_owned());
            };
            let written = std::fs::create_dir_all(&self.directory).and_then(|()| {
                // Renamed when whole: nobody ever sees half of a file.
                let whole = self.directory.join(&parcel.delivery_id);
                let half = whole.with_extension("half");
                std::fs::write(&half, bytes).and_then(|()| std::fs::rename(&half, &whole))
            });
            match written {
                Ok(()) => Sent::Delivered,
                Err(error) => Sent::Transient(error.to_string()),
            }
        })
    }
}
