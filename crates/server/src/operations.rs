//! Everything that may be asked for: one row per operation, and everything else about it is made from the row: routes, dispatch,
//! slots, authorisation, metrics, the API document. The rows stand in `operations/`, by what they are about.
//!
//! To add an operation, add a row and write its handler. A handler takes a [`RequestContext`] and gives a [`Reply`], neither of which
//! is HTTP's own.

mod daemon;
mod external;
mod jobs;
mod peers;
mod plugins;
mod pulled;
mod routing;

use std::fmt;
use std::future::ready;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

use api::ProblemCode;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::access::authorise::{Access, Permission};
use crate::openapi::Schemas;
use crate::{Reply, RequestContext, Result, Server};
use Verb::{Delete, Get, Patch, Post};

/// An operation, and everything that other parts need to know of it.
#[expect(clippy::struct_excessive_bools, reason = "each is one property of an operation, and rows name them")]
pub struct Operation {
    /// The stable name: of an idempotency key's route, of a metric's label, in the API document.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// How it is asked for over HTTP.
    pub paths: &'static [(Verb, &'static str)],
    /// What it takes to be allowed.
    pub access: Access,
    /// What comes along.
    pub body: Body,
    /// What bounds how many of it are carried out at once.
    pub slot: SlotClass,
    /// Whose form its errors have.
    pub dialect: Dialect,
    /// Whether it may be asked under an idempotency key.
    pub keyed: bool,
    /// Whether it reads the query.
    pub reads_query: bool,
    /// Whether the worker of one attempt may ask for it with that attempt's own token.
    pub for_attempts: bool,
    pub(crate) waits: Waits,
    /// Whether it heeds `Prefer: wait`.
    pub(crate) prefers_wait: bool,
    /// Whether the id in its path names an executor, or what the host itself can.
    pub(crate) invokes: bool,
    /// The words that the id in the path may be; none: any text.
    pub(crate) id_words: &'static [&'static str],
    /// Its parameters in the query and in headers, beside those that the other fields imply.
    pub(crate) parameters: fn() -> Vec<Value>,
    /// The schema of its body.
    pub(crate) takes: Option<fn(&mut Schemas) -> Value>,
    /// A request that is accepted as it stands.
    pub(crate) request_example: Option<fn() -> Value>,
    /// How it answers when it succeeds.
    pub(crate) answers: &'static [Answer],
    /// An answer as it may come.
    pub(crate) answer_example: Option<fn() -> Value>,
    /// Statuses of refusals beside those that follow from its form.
    pub(crate) also_refused: &'static [u16],
    /// Statuses that would follow from its form and never come.
    pub(crate) never_refused: &'static [u16],
    pub(crate) handler: Handler,
}

/// What carries an operation out.
pub(crate) type Handler = fn(&Arc<Server>, RequestContext) -> BoxFuture<'_, Result<Reply>>;

/// The HTTP methods in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of HTTP")]
pub enum Verb {
    Get,
    Post,
    Patch,
    Delete,
}

/// What comes along with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing is read.
    None,
    /// JSON of at most so many bytes.
    Json(usize),
    /// JSON or nothing.
    Optional(usize),
    /// Anything of at most so many bytes, as it comes.
    Raw(usize),
}

/// What bounds how many of an operation are carried out at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotClass {
    /// Nothing: a probe is always answered.
    None,
    /// The slots of requests.
    Request,
    /// The slots of streams.
    Stream,
}

/// Whose form errors have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Problem details (RFC 9457).
    Own,
    /// Those of Ductile's clients.
    Ductile,
}

/// Whether an answer may come long after the token was checked: then it is checked again. Whoever hands something out checks before
/// that itself.
#[derive(Clone, Copy)]
pub(crate) enum Waits {
    Never,
    Always,
    /// If its caller would like to wait for the end of the job that the request names.
    IfPreferred {
        job_id: fn(&RequestContext) -> String,
    },
}

/// One way to succeed.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) media_type: &'static str,
    pub(crate) schema: fn(&mut Schemas) -> Value,
}

/// One way to ask for an operation.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// How.
    pub verb: Verb,
    /// Where.
    pub path: &'static str,
    /// For what.
    pub operation: &'static Operation,
    /// The place of the operation in [`operations`].
    pub(crate) index: usize,
}

static TABLES: [&[Operation]; 7] = [
    jobs::OPERATIONS,
    pulled::OPERATIONS,
    peers::OPERATIONS,
    external::OPERATIONS,
    plugins::OPERATIONS,
    routing::OPERATIONS,
    daemon::OPERATIONS,
];

/// Every operation.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    TABLES.into_iter().flatten()
}

/// Every route.
pub fn routes() -> &'static [Route] {
    static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
        let rows = operations().enumerate();
        rows.flat_map(|(index, operation)| {
            operation.paths.iter().map(move |&(verb, path)| Route { verb, path, operation, index })
        })
        .collect()
    });
    &ROUTES
}

impl Operation {
    /// What most operations are. Name, summary, paths, access, answers and handler are each row's own.
    pub(crate) const PLAIN: Self = Self {
        name: "",
        summary: "",
        paths: &[],
        access: Access::Open,
        body: Body::None,
        slot: SlotClass::Request,
        dialect: Dialect::Own,
        keyed: false,
        reads_query: false,
        for_attempts: false,
        waits: Waits::Never,
        prefers_wait: false,
        invokes: false,
        id_words: &[],
        parameters: Vec::new,
        takes: None,
        request_example: None,
        answers: &[],
        answer_example: None,
        also_refused: &[],
        never_refused: &[],
        handler: |_, _| Box::pin(ready(Err(ProblemCode::Internal.because("the operation has no handler")))),
    };

    /// What only reads, and answers with this wire type.
    const fn reading<A: ToSchema>() -> Self {
        Self { access: needs(Permission::Read), answers: Plainly::<A>::ANSWERS, ..Self::PLAIN }
    }

    /// What takes a small body or none and reads nothing of it, and answers with this wire type.
    const fn order<A: ToSchema>(permission: Permission) -> Self {
        Self { access: needs(permission), body: Body::Optional(SMALL), ..Self::reading::<A>() }
    }

    /// What takes one wire type and answers with another.
    const fn taking<T: ToSchema, A: ToSchema>(permission: Permission, body: Body) -> Self {
        Self { access: needs(permission), body, takes: Some(request::<T>), ..Self::reading::<A>() }
    }

    /// Whether its answer may come long after its token was checked.
    pub const fn answers_after_a_wait(&self) -> bool {
        !matches!(self.waits, Waits::Never)
    }
}

/// The one way to succeed that most operations have.
struct Plainly<A>(PhantomData<A>);

impl<A: ToSchema> Plainly<A> {
    const ANSWERS: &'static [Answer] = &[answer(200, schema::<A>)];
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// The body of a small order.
const SMALL: usize = 65_536;
/// The body of what may hold users' JSON.
const LARGE: usize = api::limits::MAX_REQUEST_BYTES;

const fn needs(permission: Permission) -> Access {
    Access::Needs(permission)
}

/// JSON of this schema.
pub(crate) const fn answer(status: u16, schema: fn(&mut Schemas) -> Value) -> Answer {
    Answer { status, media_type: "application/json", schema }
}

/// The schema of a wire type that is answered.
pub(crate) fn schema<T: ToSchema>(schemas: &mut Schemas) -> Value {
    schemas.add::<T>()
}

/// The schema of an answer that is one of two wire types.
pub(crate) fn either<A: ToSchema, B: ToSchema>(schemas: &mut Schemas) -> Value {
    json!({ "anyOf": [schemas.add::<A>(), schemas.add::<B>()] })
}

/// The schema of a wire type that is sent.
pub(crate) fn request<T: ToSchema>(schemas: &mut Schemas) -> Value {
    schemas.request::<T>()
}

fn any_object(_: &mut Schemas) -> Value {
    json!({ "type": "object" })
}

fn any_text(_: &mut Schemas) -> Value {
    json!({ "type": "string" })
}

/// A handler in a box of its own size: whoever waits does not hold the room of the largest.
macro_rules! by {
    ($handler:path) => {
        |server, request| Box::pin($handler(server, request))
    };
}
use by;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_complete_and_names_are_unique() {
        let mut names = BTreeSet::new();
        for operation in operations() {
            let name = operation.name;
            assert!(names.insert(name), "{name} stands twice");
            let is_whole = !name.is_empty() && !operation.summary.is_empty() && !operation.paths.is_empty();
            assert!(is_whole && !operation.answers.is_empty(), "{name}");
            assert!(!std::ptr::fn_addr_eq(operation.handler, Operation::PLAIN.handler), "{name}");
        }
    }
}
