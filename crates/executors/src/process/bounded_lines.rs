//! Bytes on their way to becoming lines, none longer than a limit: what is longer is skipped to its end and only counted.

/// The lines of one stream.
pub(super) struct BoundedLines {
    limit: usize,
    unfinished: Vec<u8>,
    /// The line is too long: the rest of it goes as well.
    skipping: bool,
}

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    TooLong,
}

impl BoundedLines {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, unfinished: Vec::new(), skipping: false }
    }

    /// The lines that these bytes finish.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, finished) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            if !self.skipping && self.unfinished.len() + text.len() > self.limit {
                self.skipping = true;
                self.unfinished.clear();
            }
            if !self.skipping {
                self.unfinished.extend_from_slice(text);
            }
            if finished {
                let line = std::mem::take(&mut self.unfinished);
                let skipped = std::mem::take(&mut self.skipping);
                lines.push(if skipped { Line::TooLong } else { Line::Whole(line) });
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::{BoundedLines, Line};

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let mut lines = BoundedLines::new(8);
        assert!(lines.take(b"on").is_empty());
        assert_eq!(
            lines.take(b"e\ntwo\n\nth"),
            [Line::Whole(b"one".to_vec()), Line::Whole(b"two".to_vec()), Line::Whole(Vec::new())]
        );
    }

    #[test]
    fn endless_line_takes_no_more_room_than_the_longest_and_the_next_one_is_read() {
        let mut lines = BoundedLines::new(8_192);
        for _ in 0..1_000 {
            assert!(lines.take(&[b'x'; 1_000]).is_empty());
            assert!(lines.unfinished.capacity() <= 4 * 8_192);
        }
        assert_eq!(lines.take(b"\non\n"), [Line::TooLong, Line::Whole(b"on".to_vec())]);
    }
}
