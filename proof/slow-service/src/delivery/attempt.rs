//! One attempt at a delivery: every stage in order, every target that still lacks the artifact, and the verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::adapter::{Adapter, Parcel, Sent};
use super::envelope::{OnFailure, Stage};

/// What is known of the targets of a delivery; kept from attempt to attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// Those that have the artifact.
    pub delivered: BTreeSet<String>,
    /// Those that will never take it.
    pub refused: BTreeSet<String>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every stage is met.
    Succeeded,
    /// A stage can still be met; the class and the words of what went wrong.
    Again(&'static str, String),
    /// A stage can never be met.
    Never(&'static str, String),
}

/// Sends to whoever lacks it, each within the time limit.
pub async fn attempt(
    stages: &[Stage],
    parcel: &Parcel,
    adapters: &BTreeMap<String, Arc<dyn Adapter>>,
    limit: Duration,
    targets: &mut Targets,
) -> Verdict {
    let mut again = None;
    let mut never = None;
    for stage in stages {
        let mut fault =
            ("adapter-permanent", String::from("every target that could have met it has refused"));
        for target in &stage.targets {
            if targets.delivered.contains(target) || targets.refused.contains(target) {
                continue;
            }
            let Some(adapter) = adapters.get(target) else {
                targets.refused.insert(target.clone());
                fault = ("outbound-denied", format!("{target} is not a target of this service"));
                continue;
            };
            let parcel = Parcel { target: target.clone(), ..parcel.clone() };
            match tokio::time::timeout(limit, adapter.send(&parcel)).await {
                Ok(Sent::Delivered) => {
                    targets.delivered.insert(target.clone());
                }
                Ok(Sent::Transient(message)) => fault = ("adapter-transient", message),
                Ok(Sent::Permanent(message)) => {
                    targets.refused.insert(target.clone());
                    fault = ("adapter-permanent", message);
                }
                Err(_) => fault = ("stage-timeout", format!("{target} did not answer in time")),
            }
        }
        let delivered = stage.targets.iter().filter(|target| targets.delivered.contains(*target)).count();
        let refused = stage.targets.iter().filter(|target| targets.refused.contains(*target)).count();
        if delivered >= stage.needed() {
            continue;
        }
        if stage.targets.len() - refused >= stage.needed() {
            again.get_or_insert(fault);
        } else {
            never.get_or_insert(fault);
        }
        if stage.on_failure == OnFailure::Stop {
            break;
        }
    }
    match (again, never) {
        (Some((class, message)), _) => Verdict::Again(class, message),
        (None, Some((class, message))) => Verdict::Never(class, message),
        (None, None) => Verdict::Succeeded,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use super::super::envelope::Enough;
    use super::*;

    #[derive(Debug)]
    struct Says(Sent);

    impl Adapter for Says {
        fn send<'a>(&'a self, _: &'a Parcel) -> Pin<Box<dyn Future<Output = Sent> + Send + 'a>> {
            Box::pin(async { self.0.clone() })
        }
    }

    fn stage(targets: &[&str], enough: Enough, on_failure: OnFailure) -> Stage {
        let targets = targets.iter().map(|target| (*target).to_owned()).collect();
        Stage { id: "s".to_owned(), targets, enough, on_failure }
    }

    async fn verdict(stages: &[Stage]) -> (Verdict, Targets) {
        let says = |sent: Sent| -> Arc<dyn Adapter> { Arc::new(Says(sent)) };
        let adapters = BTreeMap::from([
            ("ok".to_owned(), says(Sent::Delivered)),
            ("ok2".to_owned(), says(Sent::Delivered)),
            ("later".to_owned(), says(Sent::Transient("busy".to_owned()))),
            ("no".to_owned(), says(Sent::Permanent("gone".to_owned()))),
        ]);
        let parcel = Parcel {
            delivery_id: "d".to_owned(),
            target: String::new(),
            digest: String::new(),
            bytes: None,
            artifact_ref: None,
        };
        let mut targets = Targets::default();
        let verdict = attempt(stages, &parcel, &adapters, Duration::from_secs(1), &mut targets).await;
        (verdict, targets)
    }

    #[tokio::test]
    async fn the_success_policy_decides_what_is_enough() {
        use Enough::{All, Any, Quorum};
        let class = async |targets: &[&str], enough| match verdict(&[stage(targets, enough, OnFailure::Stop)])
            .await
            .0
        {
            Verdict::Succeeded => "succeeded",
            Verdict::Again(class, _) | Verdict::Never(class, _) => class,
        };
        assert_eq!(class(&["ok", "ok2"], All).await, "succeeded");
        assert_eq!(class(&["ok", "later"], All).await, "adapter-transient");
        assert_eq!(class(&["ok", "no"], All).await, "adapter-permanent");
        assert_eq!(class(&["no", "ok"], Any).await, "succeeded");
        assert_eq!(class(&["no", "later"], Any).await, "adapter-transient");
        assert_eq!(class(&["no"], Any).await, "adapter-permanent");
        assert_eq!(class(&["ok", "ok2", "no"], Quorum(2)).await, "succeeded");
        assert_eq!(class(&["ok", "later", "no"], Quorum(2)).await, "adapter-permanent");
        assert_eq!(class(&["elsewhere"], All).await, "outbound-denied");
    }

    #[tokio::test]
    async fn stages_after_one_that_is_not_met_are_tried_only_if_the_plan_says_so() {
        let first = |on_failure| stage(&["later"], Enough::All, on_failure);
        let second = stage(&["ok"], Enough::All, OnFailure::Stop);
        let (_, stopped) = verdict(&[first(OnFailure::Stop), second.clone()]).await;
        assert!(stopped.delivered.is_empty());
        let (verdict, went_on) = verdict(&[first(OnFailure::Continue), second]).await;
        assert!(went_on.delivered.contains("ok"));
        assert!(matches!(verdict, Verdict::Again("adapter-transient", _)));
    }
}
