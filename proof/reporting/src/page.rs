//! One page of HTML: a title with a word beside it, sections, plots. No script, nothing loaded.

use std::fmt::Write as _;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2rem auto; padding: 0 1rem; color: #1d2733; background: #fff }
h1 { font-size: 1.4rem; margin-bottom: .2rem } h2 { font-size: 1.05rem; margin: 2rem 0 .3rem } p { margin: .3rem 0 }
.verdict { display: inline-block; padding: .1rem .6rem; border-radius: .3rem; color: #fff }
.green { background: #1a7f4b } .red { background: #b3261e } .void { background: #8a6100 }
svg { width: 100%; height: auto; display: block } svg text { font-size: 11px; fill: #57636f }
.value, .name { text-anchor: end } .time { text-anchor: middle } .unit { font-weight: 600 }
.grid { stroke: #e4e8ec } polyline { fill: none; stroke-width: 2 }
.accepted { stroke: #2b6cb0 } .over { stroke: #1a7f4b } .kills { stroke: #b3261e } .others { stroke: #8a6100 }
.ours { stroke: #2b6cb0 } .raw { stroke: #8a6100 } rect.ours, rect.raw { stroke: none }
circle.recovery { fill: #b3261e; fill-opacity: .55 } rect { fill: #2b6cb0 } rect.raw { fill: #8a6100 }
rect.completed { fill: #1a7f4b } rect.failed, rect.unavailable { fill: #b3261e } rect.cancelled, rect.expired { fill: #8a6100 } rect.open { fill: #57636f }
.key span { margin-right: 1.2rem } .key i { display: inline-block; width: .8rem; height: .25rem; margin-right: .35rem; vertical-align: middle }
table { border-collapse: collapse } td { padding: .1rem .9rem .1rem 0; vertical-align: top } td.count { text-align: right; font-variant-numeric: tabular-nums }
code { background: #f2f4f6; padding: .1rem .3rem; border-radius: .2rem } pre { white-space: pre-wrap; background: #f2f4f6; padding: .6rem }
@media (prefers-color-scheme: dark) { body { color: #e3e8ed; background: #14191f } .grid { stroke: #2a323b } svg text { fill: #9aa6b2 } code, pre { background: #1f262e } }
";

/// A page on its way. What is given as markup is taken as it is; what came from elsewhere goes through `escaped` first.
pub struct Page {
    markup: String,
}

impl Page {
    /// With a title, the one word that counts, and the colour of that word: `green`, `red` or `void`.
    pub fn new(title: &str, word: &str, colour: &str) -> Self {
        let mut markup = String::new();
        let _ = write!(
            markup,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
             <title>{title}: {word}</title><style>{STYLE}</style></head><body>\n\
             <h1>{title} <span class=\"verdict {colour}\">{word}</span></h1>"
        );
        Self { markup }
    }

    /// More of it.
    pub fn push(&mut self, markup: &str) {
        self.markup.push_str(markup);
    }

    /// A plot under a heading, with the colours of its lines.
    pub fn plot(&mut self, title: &str, key: &[(&str, &str)], svg: &str) {
        let _ = writeln!(self.markup, "<h2>{title}</h2>");
        if !key.is_empty() {
            self.markup.push_str("<p class=\"key\">");
            for (colour, name) in key {
                let _ = write!(self.markup, "<span><i style=\"background:{colour}\"></i>{name}</span>");
            }
            self.markup.push_str("</p>\n");
        }
        let _ = writeln!(self.markup, "{svg}");
    }

    /// All of it.
    pub fn markup(mut self) -> String {
        self.markup.push_str("</body></html>\n");
        self.markup
    }
}

/// Text that is never markup.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_was_found_is_text_and_never_markup() {
        assert_eq!(escaped("<script>&"), "&lt;script&gt;&amp;");
    }
}
