//! Which pipelines an event or an end starts: a table that is made once and never changed; whoever loads anew makes another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_file::Mistake;

use super::{Pipeline, Signal, Trigger};

/// Pipelines by what starts them and by name.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    started: BTreeMap<Trigger, Vec<Arc<Pipeline>>>,
    named: BTreeMap<String, Arc<Pipeline>>,
    left_to_claimants: Arc<[String]>,
}

impl Routes {
    /// The table of these pipelines; those of one trigger stay in their order.
    pub fn new(pipelines: Vec<Pipeline>) -> Self {
        let mut routes = Self::default();
        for pipeline in pipelines {
            let pipeline = Arc::new(pipeline);
            routes.started.entry(pipeline.trigger.clone()).or_default().push(Arc::clone(&pipeline));
            routes.named.insert(pipeline.name.clone(), pipeline);
        }
        routes
    }

    /// The same, with these types of events left to those who claim them.
    pub fn leaving_to_claimants(mut self, types: impl IntoIterator<Item = String>) -> Self {
        self.left_to_claimants = types.into_iter().collect();
        self
    }

    /// The types of events that are left to those who claim them, in the operator's order.
    pub fn left_to_claimants(&self) -> &Arc<[String]> {
        &self.left_to_claimants
    }

    /// What an event of this type may start; who emitted it and what it carries is not asked here.
    pub fn on(&self, event_type: &str) -> &[Arc<Pipeline>] {
        self.started_by(&Trigger::On(event_type.to_owned()))
    }

    /// What an end may start.
    pub fn on_hook(&self, signal: Signal) -> &[Arc<Pipeline>] {
        self.started_by(&Trigger::OnHook(signal))
    }

    /// The pipeline of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<Pipeline>> {
        self.named.get(name)
    }

    /// All names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// What cannot be done here: steps whose executor nobody has.
    pub fn doubts(&self, is_known: impl Fn(&str) -> bool) -> Vec<Mistake> {
        let mut doubts = Vec::new();
        for pipeline in self.named.values() {
            let steps = pipeline.shape.0.iter().zip(&pipeline.plan.0);
            for (number, (node, detail)) in steps.enumerate() {
                if let Some(executor) = detail.executor.as_deref().filter(|executor| !is_known(executor)) {
                    let (name, step) = (&pipeline.name, &node.id);
                    let told = format!(
                        "step {step:?} of the pipeline {name:?} uses {executor:?}, and there is no such executor"
                    );
                    let (file, place) = (pipeline.written.file.clone(), pipeline.written.steps.get(number));
                    doubts.push(Mistake { file, place: place.copied(), told });
                }
            }
        }
        doubts
    }

    fn started_by(&self, trigger: &Trigger) -> &[Arc<Pipeline>] {
        self.started.get(trigger).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const TEXT: &str = "
pipelines:
- { name: b, on: tide.changed, steps: [{ id: one, uses: noop }, { id: two, uses: nobody }] }
- { name: a, on: tide.changed, steps: [{ uses: noop }] }
- { name: c, on-hook: job.failed, steps: [{ id: tell, call: a }] }
";

    fn names(pipelines: &[Arc<Pipeline>]) -> Vec<&str> {
        pipelines.iter().map(|pipeline| pipeline.name.as_str()).collect()
    }

    fn routes() -> Routes {
        Routes::new(parse(&[("f.yaml", TEXT)]).pipelines)
    }

    #[test]
    fn event_starts_the_pipelines_of_exactly_its_type_in_the_order_of_their_files() {
        let routes = routes();
        assert_eq!(names(routes.on("tide.changed")), ["b", "a"]);
        for other in ["tide", "tide.changed.again", "", "job.failed"] {
            assert!(routes.on(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn end_starts_the_pipelines_of_its_signal() {
        let routes = routes();
        assert_eq!(names(routes.on_hook(Signal::JobFailed)), ["c"]);
        assert!(routes.on_hook(Signal::JobCompleted).is_empty());
    }

    #[test]
    fn pipelines_are_found_by_name() {
        let routes = routes();
        assert_eq!(routes.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(routes.find("a").map(|pipeline| pipeline.name.as_str()), Some("a"));
        assert!(routes.find("d").is_none());
    }

    #[test]
    fn step_whose_executor_nobody_has_is_told() {
        let doubts = routes().doubts(|executor| executor == "noop");
        let told =
            "f.yaml:3:65: step \"two\" of the pipeline \"b\" uses \"nobody\", and there is no such executor";
        assert_eq!(doubts.iter().map(ToString::to_string).collect::<Vec<_>>(), [told]);
    }
}
