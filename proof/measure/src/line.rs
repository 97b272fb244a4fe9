//! The table: every figure with the bound that it must keep.

use std::fmt;

/// One line of the table.
pub struct Line {
    /// What was measured.
    pub what: String,
    /// The daemon's figure.
    pub measured: String,
    /// What it is held against, from the same run.
    pub against: String,
    /// The figure that the bound is about.
    pub figure: f64,
    /// What it must keep.
    pub bound: Bound,
}

/// What a figure must keep.
#[derive(Clone, Copy)]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// Less than this.
    Below(f64),
    /// This or less.
    AtMost(f64),
    /// Nothing: it is told for comparison.
    Told,
}

impl Bound {
    /// Whether a figure keeps it.
    pub fn holds(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(bound) => figure >= bound,
            Self::Below(bound) => figure < bound,
            Self::AtMost(bound) => figure <= bound,
            Self::Told => true,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "at least {bound}"),
            Self::Below(bound) => write!(f, "below {bound}"),
            Self::AtMost(bound) => write!(f, "at most {bound}"),
            Self::Told => Ok(()),
        }
    }
}

/// Prints the head of the table.
pub fn head() {
    println!("| figure | daemon | beside it | ratio or value | must be | |");
    println!("| --- | ---: | ---: | ---: | ---: | --- |");
}

impl Line {
    /// Whether the bound holds.
    pub fn holds(&self) -> bool {
        self.bound.holds(self.figure)
    }

    /// The word for that.
    pub fn verdict(&self) -> &'static str {
        match self.bound {
            Bound::Told => "",
            Bound::AtLeast(_) | Bound::Below(_) | Bound::AtMost(_) if self.holds() => "holds",
            Bound::AtLeast(_) | Bound::Below(_) | Bound::AtMost(_) => "MISSED",
        }
    }

    /// Prints it; whether the bound holds.
    pub fn print(&self) -> bool {
        let Self { what, measured, against, figure, bound } = self;
        println!("| {what} | {measured} | {against} | {figure:.3} | {bound} | {} |", self.verdict());
        self.holds()
    }
}

/// The one in the middle.
pub fn middle<T>(mut rounds: Vec<T>, figure: impl Fn(&T) -> f64) -> T {
    rounds.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    let middle = rounds.len() / 2;
    rounds.swap_remove(middle)
}

/// The value that this percentage does not exceed.
pub fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) * percent).div_ceil(100)]
}
