//! HTTP: connections and their bounds, and the way of a request from its bytes to its handler and back.

mod headers;
pub(crate) mod host;
pub(crate) mod json_body;
pub(crate) mod listen;
pub(crate) mod patient_stream;
mod respond;
pub(crate) mod serve;
pub(crate) mod slots;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { sources(&path, found) } else { found.push(path) }
        }
    }

    #[test]
    fn axum_is_used_by_http_alone() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        sources(&root, &mut found);
        for path in found {
            let place = path.strip_prefix(&root).unwrap();
            let is_used = fs::read_to_string(&path).unwrap().contains(concat!("use", " axum"));
            assert!(!is_used || place.starts_with("http"), "{}", place.display());
        }
    }
}
