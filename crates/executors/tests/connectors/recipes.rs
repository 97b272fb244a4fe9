//! Every recipe of `examples/connectors` does what its recorded exchange shows, and notices when it does not.

use std::path::PathBuf;
use std::sync::Arc;

use domain::Timestamp;
use engine::ManualClock;
use executors::http::{Connector, Exchange, replay};

fn recipes() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/connectors");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

fn exchange_of(recipe: &std::path::Path) -> PathBuf {
    recipe.parent().unwrap().join("exchanges").join(recipe.file_name().unwrap())
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_seconds(1_700_000_000)))
}

#[tokio::test]
async fn every_recipe_replays_its_exchange() {
    let recipes = recipes();
    assert!(recipes.len() >= 6);
    for path in recipes {
        let connector = Connector::read(&path).unwrap_or_else(|mistake| panic!("{mistake}"));
        let exchange = Exchange::read(&exchange_of(&path)).unwrap_or_else(|mistake| panic!("{mistake}"));
        let steps = exchange.steps.len();
        assert!(exchange.steps.iter().all(|step| step.then.is_some()), "{}", path.display());
        let replayed = replay(connector, exchange, clock()).await;
        let replayed = replayed.unwrap_or_else(|mismatch| panic!("{}: {mismatch}", path.display()));
        assert_eq!(replayed.len(), steps);
    }
}

/// A connector to nowhere, and what it comes to against this exchange.
async fn come_to(connector: &str, steps: &str) {
    let connector =
        Connector::parse("connector.yaml", connector).unwrap_or_else(|mistake| panic!("{mistake}"));
    let exchange = Exchange::parse("exchange.yaml", steps).unwrap_or_else(|mistake| panic!("{mistake}"));
    replay(connector, exchange, clock()).await.unwrap_or_else(|mismatch| panic!("{mismatch}"));
}

#[tokio::test]
async fn a_secret_is_masked_before_what_is_shown_of_an_answer_is_cut() {
    let connector = "
name: press
secrets: { token: { env: PRESS_TOKEN } }
submit: { url: 'https://press.example/jobs', idempotent: true, body: { token: '${secrets.token}' } }
";
    let secret = "sesame-0123456789";
    // Wherever the cut is, a part of the secret lies before it.
    for padding in [470, 480, 490, 495] {
        let answer = format!("{}{secret}", "x".repeat(padding));
        let steps = format!(
            "secrets: {{ token: {secret} }}
steps:
  - call: submit
    exchange:
      - request: {{ method: POST, url: 'https://press.example/jobs' }}
        answer: {{ status: 200, body: '{answer}' }}
"
        );
        let connector = Connector::parse("connector.yaml", connector).unwrap();
        let exchange = Exchange::parse("exchange.yaml", &steps).unwrap();
        let replayed = replay(connector, exchange, clock()).await.unwrap();
        let wire = replayed[0].wire.join("\n");
        assert!(wire.contains("xxx") && !wire.contains("sesame"), "{padding}: {wire}");
    }
}

const PRESS: &str = "
name: press
execution_mode_support: either
result_schema: { type: object, required: [pages] }
submit: { url: 'https://press.example/jobs', idempotent: true }
status: { url: 'https://press.example/jobs/1' }
read: { status: answer.body.state, result: answer.body.result }
states: { open: running, done: completed }
";

// conforms: O22 O93
#[tokio::test]
async fn body_says_what_the_status_code_only_hints() {
    let steps = "
steps:
  - call: submit
    exchange: [{ request: { method: POST, url: 'https://press.example/jobs' }, answer: { status: 202, body: { state: done, result: { pages: 12 } } } }]
    then: { completed: { pages: 12 } }
  - call: submit
    exchange: [{ request: { method: POST, url: 'https://press.example/jobs' }, answer: { status: 200, body: { state: open } } }]
    then: { deferred: { retry_after: null, cancelable: false } }
  - call: poll
    exchange: [{ request: { method: GET, url: 'https://press.example/jobs/1' }, answer: { status: 200, body: { state: open } } }]
    then: { open: { status: running, retry_after: null, progress: null, text: null } }
  - call: poll
    exchange: [{ request: { method: GET, url: 'https://press.example/jobs/1' }, answer: { status: 202, body: { state: done, result: { pages: 12 } } } }]
    then: { completed: { pages: 12 } }
";
    come_to(PRESS, steps).await;
}

// conforms: O104
#[tokio::test]
async fn result_that_does_not_fit_its_contract_is_none() {
    let message = "'the result: the whole does not fit /required of the schema'";
    let failed =
        format!("{{ failed: {{ code: result-contract-error, message: {message}, retryable: false }} }}");
    let steps = format!(
        "
steps:
  - call: submit
    exchange: [{{ request: {{ method: POST, url: 'https://press.example/jobs' }}, answer: {{ status: 200, body: {{ state: done, result: {{ leaves: 12 }} }} }} }}]
    then: {failed}
  - call: submit
    exchange: [{{ request: {{ method: POST, url: 'https://press.example/jobs' }}, answer: {{ status: 200, body: {{ state: open }} }} }}]
    then: {{ deferred: {{ retry_after: null, cancelable: false }} }}
  - call: poll
    exchange: [{{ request: {{ method: GET, url: 'https://press.example/jobs/1' }}, answer: {{ status: 200, body: {{ state: done, result: {{ leaves: 12 }} }} }} }}]
    then: {failed}
"
    );
    come_to(PRESS, &steps).await;
    // Nor is one that is fetched from elsewhere.
    let fetched = PRESS.replace(", result: answer.body.result", "")
        + "result: { url: 'https://press.example/jobs/1/result' }\n";
    let steps = format!(
        "
steps:
  - call: submit
    exchange: [{{ request: {{ method: POST, url: 'https://press.example/jobs' }}, answer: {{ status: 200, body: {{ state: open }} }} }}]
    then: {{ deferred: {{ retry_after: null, cancelable: false }} }}
  - call: poll
    exchange:
      - {{ request: {{ method: GET, url: 'https://press.example/jobs/1' }}, answer: {{ status: 200, body: {{ state: done }} }} }}
      - {{ request: {{ method: GET, url: 'https://press.example/jobs/1/result' }}, answer: {{ status: 200, body: {{ leaves: 12 }} }} }}
    then: {failed}
"
    );
    come_to(&fetched, &steps).await;
}

// conforms: O98
#[tokio::test]
async fn redaction_that_breaks_its_contract_is_no_result() {
    let path = recipes().into_iter().find(|path| path.ends_with("sensorium-redaction.yaml")).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("result_schema:\n").unwrap();
    let without = format!("{before}allow:\n{}", rest.split_once("allow:\n").unwrap().1);
    let host = "http://127.0.0.1:8098/v1/host/capabilities/sensorium.connector";
    let schema = "schema: whisper-redaction-prepare-response.v1, schema/v: 1";
    for (result, broken) in [
        (format!("{{ {schema}, status: draft-ready }}"), "/then/required"),
        (format!("{{ {schema}, status: done }}"), "/properties/status/enum"),
        ("{ schema: other.v1, schema/v: 1, status: failed }".to_owned(), "/properties/schema/const"),
        ("{ redaction/draft: { text: a } }".to_owned(), "/required"),
    ] {
        let told = |then: String| {
            format!(
                "
steps:
  - call: submit
    exchange: [{{ request: {{ method: POST, url: '{host}.invoke' }}, answer: {{ status: 202, body: {{ status: deferred, connector_operation_id: r-1 }} }} }}]
    then: {{ deferred: {{ retry_after: null, cancelable: true }} }}
  - call: poll
    exchange: [{{ request: {{ method: POST, url: '{host}.operation.status' }}, answer: {{ status: 200, body: {{ status: completed, result: {result} }} }} }}]
    then: {then}
"
            )
        };
        let nothing = "{ failed: { code: result-contract-error, message: x, retryable: false } }";
        let exchange = Exchange::parse("exchange.yaml", &told(nothing.to_owned())).unwrap();
        let mismatch = replay(Connector::read(&path).unwrap(), exchange, clock()).await.unwrap_err();
        let mismatch = mismatch.to_string();
        let (_, found) = mismatch.split_once("but").unwrap_or(("", &mismatch));
        assert!(found.contains("result-contract-error") && found.contains(broken), "{broken}: {mismatch}");
        // It is the file that says what a result is.
        come_to(&without, &told(format!("{{ completed: {result} }}"))).await;
    }
}

#[test]
fn contracts_that_cannot_be_kept_are_told_with_their_place() {
    for (line, told) in [
        ("parameters_schema: { type: integr }", "no schema"),
        ("approval: operator", "async-only"),
        ("approval: somebody", "operator"),
    ] {
        let mistake = Connector::parse("press.yaml", &format!("{PRESS}{line}\n")).unwrap_err().to_string();
        assert!(mistake.starts_with("press.yaml:9:") && mistake.contains(told), "{mistake}");
    }
}

#[tokio::test]
async fn a_replay_tells_what_differs_and_where() {
    let path = recipes().into_iter().find(|path| path.ends_with("ci-run.yaml")).unwrap();
    let text = std::fs::read_to_string(exchange_of(&path)).unwrap();
    for (from, to, told) in [
        ("body: { ref: main, external_id: op-replay }", "body: { ref: other }", "step 1: the body"),
        (
            "url: https://ci.example.com/api/projects/team%2Fapp/runs\n",
            "url: https://ci.example.com/x\n",
            "step 1: POST",
        ),
        ("private-token: glpat-made-up", "private-token: other-token", "step 1: the header private-token"),
        ("done: 3, total: 9 }", "done: 4, total: 9 }", "step 4: expected"),
    ] {
        let exchange = Exchange::parse("exchange", &text.replacen(from, to, 1)).unwrap();
        let mismatch = replay(Connector::read(&path).unwrap(), exchange, clock()).await.unwrap_err();
        assert!(mismatch.to_string().starts_with(told), "{mismatch}");
    }
}
