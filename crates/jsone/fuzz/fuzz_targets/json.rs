//! Whatever JSON text it is given, as `[template, context]` or as an expression, rendering does not panic.
#![no_main]

use jsone::{Context, Limits, Now, Template, basic_helpers};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    let (template, values) = match serde_json::from_str::<(Value, Value)>(text) {
        Ok(pair) => pair,
        Err(_) => (json!([{"$eval": text}, text]), json!({"a": text, "b": [1, 2.5, null]})),
    };
    let limits = Limits { steps: 20_000, ..Limits::default() };
    let Ok(template) = Template::parse(&template, limits) else { return };
    let Ok(context) = Context::new(&values, &limits) else { return };
    let now = Now::from_unix_millis(0).expect("1970 is within the calendar");
    let _ = template.render(&context, &basic_helpers::lend_all(), &now);
});
