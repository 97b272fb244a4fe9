//! Plots as plain SVG: a frame, two axes, and what is drawn in it. No script, nothing loaded.

use std::fmt::Write as _;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 14.0;
const TICKS: u32 = 5;
/// More points than this nobody can tell apart.
const MAX_POINTS: usize = 2_000;

/// A plot over time, or over steps that stand beside each other.
pub struct Plot {
    svg: String,
    /// The end of the axis.
    last: f64,
    most: f64,
}

impl Plot {
    /// A frame for so many seconds, and values up to `most`.
    pub fn new(seconds: f64, most: f64, unit: &str) -> Self {
        let seconds = round_up(seconds);
        let ticks = (0..=TICKS).map(|tick| seconds * f64::from(tick) / f64::from(TICKS));
        let names: Vec<(f64, String)> = ticks.map(|at| (at, format!("{at:.0} s"))).collect();
        Self::framed(seconds, &names, most, unit)
    }

    /// A frame for steps of these names, at 0, 1, 2, ..., and values up to `most`.
    pub fn steps(names: &[String], most: f64, unit: &str) -> Self {
        let names: Vec<(f64, String)> = (0_u32..).map(f64::from).zip(names.iter().cloned()).collect();
        let last = names.last().map_or(1.0, |(at, _)| at.max(1.0));
        Self::framed(last, &names, most, unit)
    }

    fn framed(last: f64, names: &[(f64, String)], most: f64, unit: &str) -> Self {
        let most = round_up(most);
        let mut plot = Self { svg: String::new(), last, most };
        let _ = write!(plot.svg, r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">"#);
        let (end, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for tick in 0..=TICKS {
            let value = most * f64::from(tick) / f64::from(TICKS);
            let y = plot.y(value);
            let _ = write!(
                plot.svg,
                r#"<line class="grid" x1="{LEFT}" x2="{end}" y1="{y:.1}" y2="{y:.1}"/><text class="value" x="{:.1}" y="{:.1}">{}</text>"#,
                LEFT - 6.0,
                y + 4.0,
                short(value),
            );
        }
        for (at, name) in names {
            let x = plot.x(*at);
            let _ =
                write!(plot.svg, r#"<text class="time" x="{x:.1}" y="{:.1}">{name}</text>"#, floor + 18.0);
        }
        let _ = write!(plot.svg, r#"<text class="unit" x="{LEFT}" y="{:.1}">{unit}</text>"#, TOP - 2.0);
        plot
    }

    /// A line through points.
    pub fn line(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let all: Vec<(f64, f64)> = points.collect();
        let step = all.len().div_ceil(MAX_POINTS).max(1);
        let path: Vec<String> = all
            .iter()
            .step_by(step)
            .map(|(at, value)| format!("{:.1},{:.1}", self.x(*at), self.y(*value)))
            .collect();
        let _ = write!(self.svg, r#"<polyline class="{class}" points="{}"/>"#, path.join(" "));
    }

    /// A dot for each point.
    pub fn dots(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        for (at, value) in points.take(MAX_POINTS) {
            let (x, y) = (self.x(at), self.y(value));
            let _ = write!(self.svg, r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="2.5"/>"#);
        }
    }

    /// All of it.
    pub fn svg(mut self) -> String {
        self.svg.push_str("</svg>");
        self.svg
    }

    fn x(&self, at: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (at / self.last).clamp(0.0, 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value / self.most).clamp(0.0, 1.0)
    }
}

/// Bars beside each other, the longest over the whole width.
pub fn bars(rows: &[(&str, u64)]) -> String {
    const ROW: f64 = 24.0;
    const NAME: f64 = 120.0;
    const COUNT: f64 = 80.0;
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or_default().max(1);
    let height = ROW * f64::from(u32::try_from(rows.len()).unwrap_or(u32::MAX));
    let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {height}" role="img">"#);
    for (row, (name, count)) in (0_u32..).zip(rows) {
        let y = ROW * f64::from(row);
        let width = (WIDTH - NAME - COUNT) * count_as(*count) / count_as(most);
        let _ = write!(
            svg,
            r#"<text class="name" x="{:.0}" y="{:.1}">{name}</text><rect class="{name}" x="{NAME}" y="{:.1}" width="{width:.1}" height="14"/><text class="count" x="{:.1}" y="{:.1}">{count}</text>"#,
            NAME - 8.0,
            y + 15.0,
            y + 4.0,
            NAME + width + 6.0,
            y + 15.0
        );
    }
    svg.push_str("</svg>");
    svg
}

/// What is compared: a name, and a bar for each of two values; the longest over the whole width.
pub fn pairs(rows: &[(String, f64, Option<f64>)]) -> String {
    const ROW: f64 = 46.0;
    const VALUE: f64 = 80.0;
    let values = rows.iter().flat_map(|(_, one, other)| [Some(*one), *other]).flatten();
    let most = values.fold(f64::MIN_POSITIVE, f64::max);
    let height = ROW * f64::from(u32::try_from(rows.len()).unwrap_or(u32::MAX));
    let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {height}" role="img">"#);
    for (row, (name, one, other)) in (0_u32..).zip(rows) {
        let top = ROW * f64::from(row);
        let _ = write!(svg, r#"<text x="0" y="{:.1}">{name}</text>"#, top + 12.0);
        for (value, class, y) in [(Some(*one), "ours", top + 17.0), (*other, "raw", top + 29.0)] {
            let Some(value) = value else { continue };
            let width = (WIDTH - VALUE) * (value / most).clamp(0.0, 1.0);
            let _ = write!(
                svg,
                r#"<rect class="{class}" x="0" y="{y:.1}" width="{width:.1}" height="10"/><text x="{:.1}" y="{:.1}">{}</text>"#,
                width + 6.0,
                y + 9.0,
                short(value)
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

/// A count as a length; beyond the precision of a picture.
pub fn count_as(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The next number whose fifths are easy to read.
fn round_up(value: f64) -> f64 {
    let mut step = 1.0;
    // Small values have fifths of their own.
    while value > 0.0 && value <= step * f64::from(TICKS) / 10.0 && step > 1e-6 {
        step /= 10.0;
    }
    while value > step * f64::from(TICKS) {
        let twice = [2.0, 5.0, 10.0].into_iter().find(|times| value <= step * times * f64::from(TICKS));
        step *= twice.unwrap_or(10.0);
    }
    step * f64::from(TICKS)
}

fn short(value: f64) -> String {
    match value {
        10_000.0.. => format!("{:.0}k", value / 1_000.0),
        10.0.. => format!("{value:.0}"),
        _ if (value - value.round()).abs() < 1e-9 => format!("{value:.0}"),
        1.0.. => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_within_the_frame_also_when_they_are_beyond_it() {
        let mut plot = Plot::new(10.0, 100.0, "ms");
        plot.dots("kill", [(0.0, 0.0), (10.0, 100.0), (99.0, 1e9)].into_iter());
        let svg = plot.svg();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"));
        assert_eq!(svg.matches(r#"cx="846.0" cy="12.0""#).count(), 2, "{svg}");
    }

    #[test]
    fn axes_end_at_a_number_that_is_easy_to_read() {
        let ends = [0.0, 5.0, 6.0, 11.0, 51.0, 118.0, 922.0, 1_834.0].map(round_up);
        assert_eq!(format!("{ends:?}"), "[5.0, 5.0, 10.0, 25.0, 100.0, 250.0, 1000.0, 2500.0]");
        let small = [0.04, 0.3, 0.5].map(|value| format!("{:.2}", round_up(value)));
        assert_eq!(small, ["0.05", "0.50", "0.50"]);
    }

    #[test]
    fn what_is_compared_has_two_bars_and_the_longest_is_as_wide_as_the_page() {
        let svg = pairs(&[("jobs".to_owned(), 50.0, Some(100.0)), ("creates".to_owned(), 25.0, None)]);
        assert_eq!(svg.matches("<rect").count(), 3, "{svg}");
        assert!(svg.contains(r#"class="raw" x="0" y="29.0" width="780.0""#), "{svg}");
    }

    #[test]
    fn steps_stand_beside_each_other_under_their_names() {
        let mut plot = Plot::steps(&["1,000".to_owned(), "10,000".to_owned()], 2.0, "ms");
        plot.line("ours", [(0.0, 1.0), (1.0, 2.0)].into_iter());
        let svg = plot.svg();
        assert!(svg.contains(">1,000</text>") && svg.contains(">10,000</text>"), "{svg}");
    }

    #[test]
    fn many_points_are_thinned_out() {
        let mut plot = Plot::new(1.0, 1.0, "");
        plot.line("over", (0..100_000).map(|at| (f64::from(at), 1.0)));
        assert!(plot.svg().len() < 40_000);
    }
}
