//! A template: parsed once, rendered any number of times, by any number of threads.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::compile::compile;
use crate::context::Context;
use crate::error::Error;
use crate::functions::Functions;
use crate::limits::{Budget, Limits};
use crate::measure;
use crate::meter::{Meter, Usage};
use crate::node::Node;
use crate::now::Now;
use crate::reads::{Reads, reads};
use crate::render::Renderer;
use crate::scope::Scope;

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    root: Node,
    limits: Limits,
    faults: Vec<Error>,
    reads: Reads,
}

impl Template {
    /// Parses a template.
    ///
    /// Fails only when the template is too long or nested too deep. As in the official implementations, a
    /// mistake in a part of it is an error of those renders that come to that part.
    pub fn parse(json: &Json, limits: Limits) -> Result<Template, Error> {
        measure::check(json, &limits, limits.template_bytes, Budget::TemplateBytes)?;
        let (root, faults) = compile(json, &limits)?;
        let reads = reads(&root);
        Ok(Template { root, limits, faults, reads })
    }

    /// Parses a template and refuses it for any mistake that needs no context to be seen: first of all an
    /// `$eval` whose value is not a string literal, wherever it stands.
    pub fn parse_strict(json: &Json, limits: Limits) -> Result<Template, Error> {
        let template = Template::parse(json, limits)?;
        match template.faults.first() {
            Some(fault) => Err(fault.clone()),
            None => Ok(template),
        }
    }

    /// Renders the template.
    ///
    /// The same template, context, functions and `now` give the same result or the same error, always.
    pub fn render(&self, context: &Context<'_>, functions: &Functions, now: &Now) -> Result<Json, Error> {
        self.render_metered(context, functions, now).0
    }

    /// Renders the template and tells what that used of the budgets, also when it failed.
    pub fn render_metered(
        &self,
        context: &Context<'_>,
        functions: &Functions,
        now: &Now,
    ) -> (Result<Json, Error>, Usage) {
        let mut renderer = Renderer::new(Scope::new(context, functions, now), Meter::new(&self.limits));
        let result = renderer.result(&self.root);
        (result, renderer.meter().usage())
    }

    /// The context names that a render may read, found without rendering.
    ///
    /// Names that an operator surely binds around every use are left out. Names of host functions are among
    /// them: take away [`Functions::names`]. A render never reads a name beyond these, with two exceptions:
    ///
    /// - `now` and the names of [`BUILTINS`](crate::BUILTINS) are never listed, because a template that uses them
    ///   means the language's own; but an entry of the context that bears such a name hides that, and is read.
    ///   `$fromNow` and `fromNow` read `now` without naming it. A context made of the listed names alone has none
    ///   of them.
    /// - A template that asks `defined` for a computed name learns whether any name exists:
    ///   [`Template::reads_any_name`] tells so.
    pub fn reads(&self) -> &BTreeSet<String> {
        &self.reads.names
    }

    /// The properties that the template takes right from a context name, `a.b` or `a["b"]`, as pairs of both.
    ///
    /// Only what is written out is listed: a name that is computed, or a name that is passed on whole, may be read further without it.
    pub fn reads_members(&self) -> &BTreeSet<(String, String)> {
        &self.reads.members
    }

    /// Whether the template can ask for names that only a render knows: it uses `defined` in another way than
    /// calling it with a string literal. It then learns whether such a name exists, but never its value.
    pub fn reads_any_name(&self) -> bool {
        self.reads.any_name
    }

    /// The mistakes that were found while parsing, in the order of the template, each with its place; after a
    /// hundred, or 64 KiB of messages and places, the others are not listed.
    pub fn faults(&self) -> &[Error] {
        &self.faults
    }

    /// The limits that the template was parsed with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}
