//! Bodies that are no status, one after the other. None of them may be read as an end of the work.

const VARIANTS: usize = 9;

/// The body of that variant.
pub fn garbage(id: &str, variant: usize, nesting: usize) -> Vec<u8> {
    match variant % VARIANTS {
        0 => b"<html><body>502 Bad Gateway</body></html>".to_vec(),
        1 => br#"{"id": 7, "state": 3, "progress": "half", "message": [], "error": "none"}"#.to_vec(),
        2 => format!(r#"{{"id":"{id}","state":"transcending","progress":{{"percent":40}}}}"#).into_bytes(),
        3 => nested(nesting),
        4 => format!(r#"{{"id":"{id}","state":"done","state":"running","result":1}}"#).into_bytes(),
        5 => invalid_utf8(id),
        6 => Vec::new(),
        7 => format!(r#"{{"id":"{id}","state":"do"#).into_bytes(),
        _ => b"null".to_vec(),
    }
}

fn nested(depth: usize) -> Vec<u8> {
    let mut body = br#"{"state":"running","message":"#.to_vec();
    body.extend(std::iter::repeat_n(b'[', depth));
    body.extend(std::iter::repeat_n(b']', depth));
    body.push(b'}');
    body
}

fn invalid_utf8(id: &str) -> Vec<u8> {
    let mut body = format!(r#"{{"id":"{id}","state":"running","message":""#).into_bytes();
    body.extend([0xff, 0xfe, 0xc3, 0x28, 0x00]);
    body.extend(br#""}"#);
    body
}
