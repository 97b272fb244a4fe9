//! A plain table: columns as wide as their widest cell, the last one free.

use std::fmt;

use super::plain;

/// The widest that a cell is shown; no id is longer.
const MAX_CELL_CHARS: usize = 56;
const GAP: &str = "  ";

/// A table.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(heads: &[&str]) -> Self {
        Self { rows: vec![heads.iter().map(|&head| head.to_owned()).collect()] }
    }

    pub fn row(&mut self, cells: &[&str]) {
        self.rows.push(cells.iter().map(|cell| cut(&plain(cell))).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(row.len().max(widths.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let lines = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
        });
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_CELL_CHARS {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MAX_CELL_CHARS - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_line_up_and_long_cells_are_cut() {
        let mut table = Table::new(&["ID", "Title"]);
        table.row(&["work-1", &"x".repeat(60)]);
        table.row(&["w", "y"]);
        assert_eq!(table.to_string(), format!("ID      Title\nwork-1  {}…\nw       y", "x".repeat(55)));
    }
}
