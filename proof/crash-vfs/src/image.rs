//! What a disk holds at one moment: names and bytes, without locks, handles or shared memory.

use std::collections::BTreeMap;
use std::fmt;

/// The files of a disk after a crash. Equal images hold the same files with the same bytes.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Image {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Image {
    /// The bytes of the file whose name ends so; none if there is no such file.
    pub fn file(&self, name_end: &str) -> Option<&[u8]> {
        self.files.iter().find(|(name, _)| name.ends_with(name_end)).map(|(_, bytes)| bytes.as_slice())
    }
}

// Names and sizes: the bytes would drown the message of a failed assertion.
impl fmt::Debug for Image {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.files.iter().map(|(name, bytes)| (name, bytes.len()))).finish()
    }
}

/// Writes into a file's bytes; a gap between the old end and the offset becomes zeros.
pub(crate) fn write_at(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset..end].copy_from_slice(bytes);
}
