//! A plain table: columns as wide as their widest cell, the last one free.

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

    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let lines = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
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
        assert_eq!(table.text(), format!("ID      Title\nwork-1  {}…\nw       y", "x".repeat(55)));
    }
}
