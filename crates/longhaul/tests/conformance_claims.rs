//! Makes `docs/conformance.md` from the `// conforms: L53 L54` lines in the sources.
//! Every claim stands above a test of the product, no rule is shown by unit tests alone, and the page is never stale: this fails until
//! `LONGHAUL_BLESS=1` has written it. Does not judge whether the test would fail without the rule; that is for whoever reviews the claim.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;

use tidy::{rust_files, test_below};

/// Letter, name, and number of the last rule. Rules are only ever appended.
const DIALECTS: [(char, &str, u16); 5] = [
    ('L', "Loomworks", 99),
    ('A', "Azolla", 67),
    ('D', "Ductile", 81),
    ('O', "Orbiplex", 134),
    ('R', "Repowire", 115),
];

const BLESS: &str = "LONGHAUL_BLESS=1 cargo test -p longhaul --test conformance_claims";

/// Sources whose tests see no part of the product: services that stand for those of others, instruments, examples.
const NOT_THE_PRODUCT: [&str; 8] = [
    "proof/bench/",
    "proof/crash-vfs/",
    "proof/drill/",
    "proof/measure/",
    "proof/reporting/",
    "proof/slow-service/",
    "proof/test-postgres/",
    "examples/",
];

/// Rules that only a test beside the code can see, and why. A rule that is shown from outside too has no place here.
const SEEN_BESIDE_THE_CODE: [(&str, &str); 0] = [];

/// One rule; orders by dialect, then number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    dialect: usize,
    number: u16,
}

/// The tests that show each rule, as `file: test`.
type Claims = BTreeMap<Rule, BTreeSet<String>>;

#[test]
fn every_claim_stands_above_a_test_and_the_page_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut claims = Claims::new();
    let mut complaints = Vec::new();
    for file in rust_files(&root) {
        let source = fs::read_to_string(root.join(&file)).expect("sources are readable");
        if let Err(complaint) = collect(&mut claims, &file.display().to_string(), &source) {
            complaints.push(complaint);
        }
    }
    complaints.extend(shown_by_unit_tests_alone(&claims));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));

    let page = root.join("docs/conformance.md");
    let rendered = render(&claims);
    if std::env::var_os("LONGHAUL_BLESS").is_some_and(|value| value == "1") {
        fs::write(&page, &rendered).expect("docs/ is writable");
    }
    let stored = fs::read_to_string(&page).unwrap_or_default();
    assert!(stored == rendered, "docs/conformance.md is stale; run {BLESS}");
}

#[test]
fn a_claim_reaches_its_test_through_attributes_and_comments() {
    let source = "// conforms: A2 L1\n/// Why.\n#[tokio::test(start_paused = true)]\nasync fn it_waits() {}";
    let mut claims = Claims::new();
    collect(&mut claims, "a.rs", source).unwrap();
    let shown: Vec<String> = claims.iter().map(|(rule, tests)| format!("{rule} {tests:?}")).collect();
    assert_eq!(shown, [r#"L1 {"a.rs: it_waits"}"#, r#"A2 {"a.rs: it_waits"}"#]);
}

#[test]
fn a_claim_above_anything_but_a_test_is_refused_with_file_and_line() {
    for below in ["fn plain() {}", "struct Job;\n#[test]\nfn later() {}", "#[inline]\nfn plain() {}", ""] {
        let complaint = collect(&mut Claims::new(), "a.rs", &format!("\n// conforms: L1\n{below}"));
        assert_eq!(
            complaint.unwrap_err(),
            "a.rs:2: a claim stands above the attributes of a test",
            "{below}"
        );
    }
}

#[test]
fn a_claim_of_what_is_not_the_product_is_refused() {
    let source = "// conforms: L1\n#[test]\nfn it_works() {}";
    for file in ["proof/slow-service/tests/a.rs", "proof/drill/src/a.rs", "proof/bench/src/a.rs"] {
        let complaint = collect(&mut Claims::new(), file, source).unwrap_err();
        assert_eq!(complaint, format!("{file}:1: a claim stands above a test of the product"));
    }
}

#[test]
fn a_rule_that_unit_tests_alone_show_is_refused() {
    let source = "// conforms: L1\n#[test]\nfn it_works() {}";
    let mut claims = Claims::new();
    collect(&mut claims, "crates/domain/src/a.rs", source).unwrap();
    let complaints = shown_by_unit_tests_alone(&claims);
    assert_eq!(complaints.len(), 1);
    assert!(complaints[0].starts_with("L1: only crates/domain/src/a.rs: it_works"), "{complaints:?}");
    collect(&mut claims, "crates/engine/tests/a.rs", source).unwrap();
    assert_eq!(shown_by_unit_tests_alone(&claims), [""; 0]);
}

#[test]
fn a_rule_is_known_by_its_number_and_no_other() {
    for (last, unknown) in
        [("L99", "L100"), ("A67", "A68"), ("D81", "D82"), ("O134", "O135"), ("R115", "R116")]
    {
        assert!(rule(last).is_some(), "{last}");
        assert!(rule(unknown).is_none(), "{unknown}");
    }
}

#[test]
fn a_malformed_claim_is_refused_with_file_and_line() {
    for line in [
        "// conforms: L0",
        "// conforms: L100",
        "// conforms: L01",
        "// conforms: L1,",
        "// conforms: X1",
        "// conforms: L1 and L2",
        "// conforms:",
        "//conforms: L1",
        "/// Conforms: L1",
    ] {
        let complaint = collect(&mut Claims::new(), "a.rs", &format!("{line}\n#[test]\nfn it_works() {{}}"));
        assert!(complaint.unwrap_err().starts_with("a.rs:1: malformed"), "{line}");
    }
}

/// Adds the claims of one file, or says which line is wrong.
fn collect(claims: &mut Claims, file: &str, source: &str) -> Result<(), String> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| is_claim(line)) {
        let at = format!("{file}:{}", index + 1);
        let rules = claimed_rules(line).ok_or_else(|| format!("{at}: malformed claim {line:?}"))?;
        if NOT_THE_PRODUCT.iter().any(|place| file.starts_with(place)) {
            return Err(format!("{at}: a claim stands above a test of the product"));
        }
        let test = test_below(&lines[index + 1..])
            .ok_or_else(|| format!("{at}: a claim stands above the attributes of a test"))?;
        for rule in rules {
            claims.entry(rule).or_default().insert(format!("{file}: {test}"));
        }
    }
    Ok(())
}

/// What is wrong with rules that no test from outside the sources shows, and with needless exceptions.
fn shown_by_unit_tests_alone(claims: &Claims) -> Vec<String> {
    let excepted: BTreeSet<Rule> = SEEN_BESIDE_THE_CODE.iter().filter_map(|(id, _)| rule(id)).collect();
    let mut complaints = Vec::new();
    for (rule, tests) in claims {
        let alone = tests.iter().all(|test| test.contains("/src/"));
        if alone && !excepted.contains(rule) {
            let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
            complaints.push(format!(
                "{rule}: only {} shows it; show it from outside or say why in SEEN_BESIDE_THE_CODE",
                tests.join(", ")
            ));
        } else if !alone && excepted.contains(rule) {
            complaints.push(format!("{rule}: it is shown from outside; take it out of SEEN_BESIDE_THE_CODE"));
        }
    }
    complaints
}

/// Also true of near misses such as `//Conforms:`, so that none is silently passed over.
fn is_claim(line: &str) -> bool {
    line.strip_prefix("//")
        .is_some_and(|rest| rest.trim_start_matches(['/', '!', ' ']).to_lowercase().starts_with("conforms:"))
}

fn claimed_rules(line: &str) -> Option<Vec<Rule>> {
    let rules: Vec<Rule> =
        line.strip_prefix("// conforms: ")?.split_whitespace().map(rule).collect::<Option<_>>()?;
    (!rules.is_empty()).then_some(rules)
}

fn rule(id: &str) -> Option<Rule> {
    let dialect = DIALECTS.iter().position(|(letter, _, _)| id.starts_with(*letter))?;
    let number = id[1..].parse().ok().filter(|number| (1..=DIALECTS[dialect].2).contains(number))?;
    let rule = Rule { dialect, number };
    // One spelling only: not "L+1", not "L01".
    (rule.to_string() == id).then_some(rule)
}

fn render(claims: &Claims) -> String {
    let mut page = format!(
        "# Conformance\n\n\
         Which rules of the five dialects are shown by which tests. Generated by\n\
         `crates/longhaul/tests/conformance_claims.rs` from the `// conforms:` lines above the tests. Do not edit; run\n\
         `{BLESS}`.\n\n\
         | dialect | rules | shown |\n| --- | ---: | ---: |\n"
    );
    for (dialect, (letter, name, rules)) in DIALECTS.iter().enumerate() {
        let shown = claims.keys().filter(|rule| rule.dialect == dialect).count();
        writeln!(page, "| {letter} {name} | {rules} | {shown} |").expect("a string takes every write");
    }
    let rules: u16 = DIALECTS.iter().map(|(_, _, rules)| rules).sum();
    writeln!(page, "| all | {rules} | {} |", claims.len()).expect("a string takes every write");

    page.push_str("\n| rule | shown by |\n| --- | --- |\n");
    for (rule, tests) in claims {
        let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
        writeln!(page, "| {rule} | {} |", tests.join("<br>")).expect("a string takes every write");
    }
    page
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", DIALECTS[self.dialect].0, self.number)
    }
}
