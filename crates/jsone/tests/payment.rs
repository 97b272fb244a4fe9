//! Steps follow the work: whatever looks at long text pays a step for every 64 bytes, whatever walks a collection
//! a step for every entry, and what finds or orders keys pays for every comparison. The tables below name every
//! operator, infix operator, built-in and helper; one that is missing from them fails the last test.

#[path = "support/rendering.rs"]
mod rendering;

use std::collections::BTreeSet;

use jsone::{BYTES_PER_STEP, Error, Functions, Limits, basic_helpers};
use rendering::{nested, render_with};
use serde_json::{Map, Value as Json, json};

/// Length of the long texts and keys.
const BYTES: usize = 128 * 1024;
/// Size of the large collections.
const ENTRIES: usize = 10_000;
/// What a render costs that does nothing with what is long or large.
const NEXT_TO_NOTHING: u64 = 100;

/// What a form must cost at the least.
#[derive(Clone, Copy)]
enum Least {
    /// So many times a step for every 64 bytes.
    Bytes(u64),
    /// So many times a step for every entry.
    Entries(u64),
    /// It passes on what it is given, or refuses it, without looking inside: it may cost next to nothing.
    Constant,
}

use Least::{Bytes, Constant, Entries};

/// A form under the name by which the registries know it.
struct Form {
    name: &'static str,
    template: Json,
    least: Least,
}

fn form(name: &'static str, template: Json, least: Least) -> Form {
    Form { name, template, least }
}

/// An expression that is the form.
fn expression(name: &'static str, expression: &str, least: Least) -> Form {
    form(name, json!({"$eval": expression}), least)
}

/// A long name; one more letter makes it another of the same beginning.
fn long(last: char) -> String {
    format!("{}{last}", "a".repeat(BYTES))
}

fn context() -> Json {
    let numbers: Vec<usize> = (0..ENTRIES).collect();
    let words: Vec<String> = numbers.iter().map(|n| format!("k{n}")).collect();
    let object: Map<String, Json> = words.iter().map(|word| (word.clone(), json!(1))).collect();
    let keyed = json!({long('b'): 1, long('c'): 2});
    json!({
        "text": long('b'), "same": long('b'), "other": long('c'), "spaces": " ".repeat(BYTES),
        "path": format!("$['{}']", long('b')),
        "list": &numbers, "equal_list": &numbers, "words": &words,
        "object": &object, "equal_object": &object, "keyed": &keyed, "equal_keyed": &keyed,
        "lists": [&numbers], "one": 1
    })
}

fn operators() -> Vec<Form> {
    let conditions: Map<String, Json> = (1..=ENTRIES).map(|n| (format!("one > {n}"), json!(1))).collect();
    vec![
        form("$eval", json!({"$eval": long('z')}), Bytes(1)),
        form("$find", json!({"$find": {"$eval": "list"}, "each(x)": "false"}), Entries(1)),
        form("$flatten", json!({"$flatten": {"$eval": "list"}}), Entries(1)),
        form("$flatten", json!({"$flatten": {"$eval": "lists"}}), Entries(1)),
        form("$flattenDeep", json!({"$flattenDeep": {"$eval": "lists"}}), Entries(1)),
        form("$fromNow", json!({"$fromNow": {"$eval": "text"}}), Bytes(1)),
        form("$fromNow", json!({"$fromNow": "1 day", "from": {"$eval": "text"}}), Bytes(1)),
        form("$if", json!({"$if": "text && list && object", "then": 1}), Constant),
        form("$json", json!({"$json": {"$eval": "text"}}), Bytes(1)),
        form("$json", json!({"$json": {"$eval": "keyed"}}), Bytes(2)),
        form("$json", json!({"$json": {"$eval": "object"}}), Entries(1)),
        form("$let", json!({"$let": {"$eval": "keyed"}, "in": 1}), Bytes(2)),
        form("$let", json!({"$let": {"$eval": "object"}, "in": 1}), Entries(1)),
        form("$map", json!({"$map": {"$eval": "list"}, "each(x)": 1}), Entries(1)),
        form("$map", json!({"$map": {"$eval": "object"}, "each(v,k)": {}}), Entries(1)),
        form("$map", json!({"$map": {"$eval": "keyed"}, "each(v,k)": {}}), Bytes(2)),
        form("$match", json!({"$match": &conditions}), Entries(1)),
        form("$merge", json!({"$merge": [{"$eval": "object"}, {"$eval": "object"}]}), Entries(2 * 14)),
        form("$merge", json!({"$merge": [{"$eval": "keyed"}, {"$eval": "keyed"}]}), Bytes(2 * 4)),
        form("$mergeDeep", json!({"$mergeDeep": [{"$eval": "object"}, {"$eval": "object"}]}), Entries(14)),
        form("$mergeDeep", json!({"$mergeDeep": [{"$eval": "keyed"}, {"$eval": "keyed"}]}), Bytes(2 * 4)),
        form(
            "$reduce",
            json!({"$reduce": {"$eval": "list"}, "initial": 0, "each(a,x)": {"$eval": "x"}}),
            Entries(1),
        ),
        form("$reverse", json!({"$reverse": {"$eval": "list"}}), Entries(1)),
        form("$sort", json!({"$sort": {"$eval": "list"}}), Entries(14)),
        form("$sort", json!({"$sort": {"$eval": "[text, other]"}}), Bytes(2 * 2)),
        form("$switch", json!({"$switch": &conditions}), Entries(1)),
    ]
}

/// What expressions have beside infix operators and calls, and strings and objects of templates.
fn other_forms() -> Vec<Form> {
    let (b, c) = (long('b'), long('c'));
    vec![
        form("${..}", json!("${text}"), Bytes(1)),
        form("${..}", json!({"${text}": 1, "${other}": 1}), Bytes(4)),
        expression("a.b", &format!("keyed.{b}"), Bytes(2)),
        expression("a[i]", "keyed[text]", Bytes(2)),
        expression("a[i]", "text[0]", Bytes(1)),
        expression("a[i]", "list[0]", Constant),
        expression("a[i:j]", "text[0:1]", Bytes(1)),
        expression("a[i:j]", "list[0:]", Constant),
        expression("a[i:j]", "range(0, 10000)[0:]", Entries(4)),
        expression("{..}", &format!("{{{b}: 1, {c}: 1}}"), Bytes(2)),
        expression("{..}", &format!("{{{c}: 1, {b}: 1}}"), Bytes(4)),
        expression("!", "!text", Constant),
        expression("a name", "text", Constant),
    ]
}

fn infixes() -> Vec<Form> {
    vec![
        expression("||", "text || list", Constant),
        expression("&&", "text && list", Constant),
        expression("in", "other in text", Bytes(2)),
        expression("in", "text in keyed", Bytes(2)),
        expression("in", "'x' in list", Entries(1)),
        expression("==", "text == same", Bytes(1)),
        expression("==", "list == equal_list", Entries(1)),
        expression("==", "object == equal_object", Entries(14)),
        expression("==", "keyed == equal_keyed", Bytes(4)),
        expression("!=", "text != same", Bytes(1)),
        expression("<", "text < other", Bytes(1)),
        expression("<=", "text <= other", Bytes(1)),
        expression(">", "text > other", Bytes(1)),
        expression(">=", "text >= other", Bytes(1)),
        expression("+", "text + other", Bytes(2)),
        expression("-", "text - other", Constant),
        expression("*", "text * other", Constant),
        expression("/", "text / other", Constant),
        expression("**", "text ** other", Constant),
    ]
}

fn builtins() -> Vec<Form> {
    let ones = vec!["1"; ENTRIES].join(",");
    vec![
        expression("abs", "abs(text)", Constant),
        expression("ceil", "ceil(text)", Constant),
        expression("defined", "defined(text)", Bytes(1)),
        expression("floor", "floor(text)", Constant),
        expression("fromNow", "fromNow(text)", Bytes(1)),
        expression("fromNow", "fromNow('1 day', text)", Bytes(1)),
        expression("join", "join(words, '')", Entries(1)),
        expression("join", "join([text, other], '')", Bytes(2)),
        expression("join", "join([1, 2, 3], text)", Bytes(2)),
        expression("len", "len(text)", Bytes(1)),
        expression("len", "len(list)", Constant),
        expression("lowercase", "lowercase(text)", Bytes(2)),
        expression("lstrip", "lstrip(spaces)", Bytes(1)),
        expression("max", &format!("max({ones})"), Entries(1)),
        expression("min", &format!("min({ones})"), Entries(1)),
        expression("number", "number(text)", Bytes(1)),
        expression("range", "range(0, 10000)", Entries(1)),
        expression("rstrip", "rstrip(spaces)", Bytes(1)),
        expression("split", "split(text, 'b')", Bytes(1)),
        expression("split", "split('b', text)", Bytes(1)),
        expression("split", "split(join(words, ''), '')", Entries(4)),
        expression("sqrt", "sqrt(text)", Constant),
        expression("str", "str(text)", Constant),
        expression("strip", "strip(spaces)", Bytes(1)),
        expression("typeof", "typeof(text)", Constant),
        expression("uppercase", "uppercase(text)", Bytes(2)),
    ]
}

/// Arguments are paid for when they are copied for a helper; what it does with them counts on top of that.
fn helpers() -> Vec<Form> {
    vec![
        expression("default", "default(text, 1)", Bytes(3)),
        expression("default", "default(null, list)", Entries(3)),
        expression("has", "has(keyed, path)", Bytes(2 + 1 + 2)),
        expression("has", "has(object, 'k1')", Entries(1)),
        expression("idempotency_key", "idempotency_key([text])", Bytes(2)),
        expression("idempotency_key", "idempotency_key(list)", Entries(2)),
        expression("pick", "pick(keyed, [text])", Bytes(2 + 1 + 2)),
        expression("pick", "pick(object, words)", Entries(2 + 14)),
        expression("sha256_json", "sha256_json(text)", Bytes(2)),
        expression("sha256_json", "sha256_json(keyed)", Bytes(2 + 2 * 2)),
        expression("sha256_json", "sha256_json(object)", Entries(1 + 14)),
        expression("sha256_text", "sha256_text(text)", Bytes(2)),
    ]
}

/// Steps of a render that throws the form's value away, so that the result costs nothing.
fn steps(template: &Json, context: &Json) -> u64 {
    rendered(&json!({"$let": {"thrown_away": template}, "in": 1}), context).1
}

fn rendered(template: &Json, context: &Json) -> (Result<Json, Error>, u64) {
    let limits = Limits {
        template_bytes: usize::MAX,
        context_bytes: usize::MAX,
        string_bytes: 8 * BYTES,
        collection_size: 20 * ENTRIES,
        steps: u64::MAX,
        ..Limits::default()
    };
    let (result, usage) = render_with(template, context, &basic_helpers::lend_all(), limits);
    (result, usage.steps)
}

#[test]
fn every_form_pays_for_what_it_looks_at() {
    let context = context();
    let mut unpaid = Vec::new();
    for Form { name, template, least } in
        [operators(), other_forms(), infixes(), builtins(), helpers()].into_iter().flatten()
    {
        let steps = steps(&template, &context);
        let paid = match least {
            Bytes(times) => steps >= times * (BYTES / BYTES_PER_STEP) as u64,
            Entries(times) => steps >= times * ENTRIES as u64,
            Constant => steps < NEXT_TO_NOTHING,
        };
        if !paid {
            let shown: String = template.to_string().chars().take(80).collect();
            unpaid.push(format!("{name}: {steps} steps for {shown}"));
        }
    }
    assert!(unpaid.is_empty(), "{} forms:\n{}", unpaid.len(), unpaid.join("\n"));
}

#[test]
fn every_operator_infix_built_in_and_helper_stands_in_the_tables() {
    fn names(forms: Vec<Form>) -> BTreeSet<&'static str> {
        forms.into_iter().map(|form| form.name).collect()
    }
    assert_eq!(names(operators()), BTreeSet::from(jsone::OPERATORS));
    assert_eq!(names(infixes()), BTreeSet::from(jsone::INFIX));
    assert_eq!(names(builtins()), BTreeSet::from(jsone::BUILTINS));
    assert_eq!(names(helpers()), BTreeSet::from(basic_helpers::BASIC_HELPERS));
}

#[test]
fn a_field_that_is_picked_again_is_not_copied_again() {
    let picked = |times: usize| {
        let fields = vec!["'list'"; times].join(",");
        steps(&json!({"$eval": format!("pick({{list: list}}, [{fields}])")}), &context())
    };
    // Copied for the helper, copied by it, and taken back: two, one and two steps for an element.
    assert!(picked(1) >= 5 * ENTRIES as u64);
    assert!(picked(1000) < picked(1) + 10 * 1000);
}

#[test]
fn a_name_is_paid_for_by_the_scopes_that_are_searched_for_it() {
    let looked_up = |scopes: usize| {
        let inner = json!({"$eval": "[one, one, one, one, one, one, one, one, one, one]"});
        let around = |body| json!({"$let": {"$eval": "object"}, "in": body});
        let once = steps(&nested(scopes, json!({"$eval": "[]"}), around), &context());
        steps(&nested(scopes, inner, around), &context()) - once
    };
    // Ten lookups in sixty scopes of ten thousand names.
    assert!(looked_up(60) - looked_up(0) >= 10 * 60 * 13);
    let variables = json!({"$map": [1], "each(x,i)": {"$map": [1], "each(y,j)": {"$eval": "one"}}});
    let variable = json!({"$map": [1], "each(x,i)": {"$map": [1], "each(y,j)": {"$eval": "j"}}});
    assert_eq!(steps(&variables, &json!({"one": 1})) - steps(&variable, &json!({"one": 1})), 3 + 1);
}

#[test]
fn a_key_is_paid_for_by_the_comparisons_that_find_it() {
    let context = context();
    let few = steps(&json!({"$eval": "{k7: 1}.k7"}), &json!({}));
    for expression in ["object.k7", "object['k7']", "'k7' in object"] {
        assert!(steps(&json!({"$eval": expression}), &context) >= few + 10, "{expression}");
    }
}

// The tables prove nothing about functions that they do not know.
#[test]
fn a_function_of_the_host_pays_for_its_arguments_and_its_answer() {
    let mut functions = Functions::none();
    functions.register("echo", jsone::Arity::exactly(1), |arguments| Ok(arguments[0].clone())).unwrap();
    let template = json!({"$eval": "typeof(echo(list))"});
    let usage = render_with(&template, &json!({"list": vec![1; 1000]}), &functions, Limits::default()).1;
    assert!(usage.steps >= 2 * 1000);
}
