//! Whatever a sample is made of, rendering it does not panic, and does the same twice.
#![no_main]

#[path = "../../tests/support/sample.rs"]
mod sample;

use jsone::{Context, Limits, Now, Template, basic_helpers};
use libfuzzer_sys::fuzz_target;
use sample::Flavour;

fuzz_target!(|bytes: &[u8]| {
    let sample = sample::sample(bytes, Flavour::Wild);
    let limits = Limits { steps: 20_000, ..Limits::default() };
    let Ok(template) = Template::parse(&sample.template, limits) else { return };
    let Ok(context) = Context::new(&sample.context, &limits) else { return };
    let now = Now::from_unix_millis(0).expect("1970 is within the calendar");
    let functions = basic_helpers::lend_all();
    let (first, usage) = template.render_metered(&context, &functions, &now);
    assert!(usage.steps <= limits.steps);
    assert_eq!(first, template.render(&context, &functions, &now));
});
