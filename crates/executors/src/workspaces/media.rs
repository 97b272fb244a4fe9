//! What kind of thing a file is, by how its name ends. A word for people and viewers, and no promise: nobody looks into the file.

const UNKNOWN: &str = "application/octet-stream";

/// The media type of a file with this name.
pub(crate) fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "json" => "application/json",
        "jsonl" | "ndjson" => "application/x-ndjson",
        "yaml" | "yml" => "application/yaml",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "tar" => "application/x-tar",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::media_type;

    #[test]
    fn type_goes_by_the_end_of_the_name_whatever_its_case() {
        assert_eq!(media_type("charts/Level.PNG"), "image/png");
        assert_eq!(media_type("notes.md"), "text/markdown");
        assert_eq!(media_type("Makefile"), "application/octet-stream");
    }
}
