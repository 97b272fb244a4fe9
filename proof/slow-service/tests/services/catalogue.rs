//! What is written about the zoo is what the service says about it.

use std::collections::BTreeSet;

use slow_service::Manner;

use crate::given::{ask, service, start_as};

#[test]
fn the_readme_has_the_whole_table() {
    let readme = include_str!("../../README.md");
    for manner in Manner::ALL {
        let sheet = manner.sheet();
        let row = format!("| `{}` | {} | {} |", sheet.name, sheet.does, sheet.outcome);
        assert!(readme.lines().any(|line| line == row), "the README lacks this line:\n{row}");
    }
    let rows = readme.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, Manner::ALL.len(), "the README has a manner that the service has not");
}

#[test]
fn every_manner_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = Manner::ALL.into_iter().map(Manner::name).collect();
    assert_eq!(names.len(), Manner::ALL.len());
}

#[tokio::test]
async fn the_service_lists_its_manners_and_takes_each_of_them() {
    let (service, _hand) = service().await;
    let page = ask(&service.url(), "GET", "/zoo", "", "").await.json();
    let listed = page["manners"].as_array().unwrap();
    assert_eq!(listed.len(), Manner::ALL.len());
    for manner in listed {
        let name = manner["name"].as_str().unwrap();
        // This one has taken it without a word.
        if name != "accepts_then_drops" {
            start_as(&service, name).await;
        }
    }
}
