//! Every command in every situation: what comes of it.

use std::collections::BTreeSet;

use domain::job::{self, Job, JobCommand, JobFact};
use domain::operation::{self, OperationCommand};
use domain::{Decision, JobId, Refusal, Timestamp};

use crate::job_situations::{NOW, new_job};
use crate::{job_commands, job_situations, operations};

/// All that was tried on one kind of record.
pub(crate) struct Walk {
    pub(crate) tables: Vec<Table>,
}

/// One topic: a column per order, a row per situation.
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) word: &'static str,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

pub(crate) struct Column {
    pub(crate) label: &'static str,
    pub(crate) by: &'static str,
}

pub(crate) struct Row {
    /// What the design calls the situation.
    pub(crate) class: String,
    /// What is special about it, if anything.
    pub(crate) besides: &'static str,
    /// The state or status; none if the record is not there yet.
    pub(crate) state: Option<&'static str>,
    pub(crate) cells: Vec<Cell>,
}

/// What came of one command.
pub(crate) enum Cell {
    /// It happened, and this is the state now.
    Became(&'static str),
    Nothing,
    Refused {
        refusal: Refusal,
        kept: bool,
    },
}

/// From, to, by.
pub(crate) type Move = (String, String, String);

impl Walk {
    /// Every change of state that was accepted.
    pub(crate) fn moves(&self) -> BTreeSet<Move> {
        let mut moves = BTreeSet::new();
        self.each(|row, column, cell| {
            if let Cell::Became(to) = cell
                && row.state != Some(to)
            {
                moves.insert((row.class.clone(), (*to).to_owned(), column.by.to_owned()));
            }
        });
        moves
    }

    /// Every situation in which a report of its own state was taken.
    pub(crate) fn noted(&self) -> BTreeSet<String> {
        let mut noted = BTreeSet::new();
        self.each(|row, column, cell| {
            if let Cell::Became(to) = cell
                && row.state == Some(to)
                && (column.by, column.label) == ("report", *to)
            {
                noted.insert(row.class.clone());
            }
        });
        noted
    }

    /// Every refusal.
    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        self.each(|_, _, cell| {
            if let Cell::Refused { refusal, .. } = cell {
                refusals.push(refusal.clone());
            }
        });
        refusals
    }

    pub(crate) fn each(&self, mut look: impl FnMut(&Row, &Column, &Cell)) {
        for table in &self.tables {
            for row in &table.rows {
                for (column, cell) in table.columns.iter().zip(&row.cells) {
                    look(row, column, cell);
                }
            }
        }
    }
}

pub(crate) fn jobs() -> Walk {
    let tables = job_commands::topics().into_iter().map(|topic| {
        let columns = topic.orders.iter().map(|order| Column { label: order.label, by: order.by }).collect();
        let absent = Row {
            class: "(none)".to_owned(),
            besides: "",
            state: None,
            cells: topic.orders.iter().map(on_no_job).collect(),
        };
        let present = job_situations::all().into_iter().map(|situation| Row {
            class: situation.class.to_owned(),
            besides: situation.besides,
            state: Some(situation.job.state.name().as_str()),
            cells: topic.orders.iter().map(|order| on_job(&situation, order)).collect(),
        });
        Table {
            title: topic.title,
            word: topic.word,
            columns,
            rows: std::iter::once(absent).chain(present).collect(),
        }
    });
    Walk { tables: tables.collect() }
}

fn on_no_job(order: &job_commands::Order) -> Cell {
    let id = JobId::new("work-1");
    let any = Job::new(id.clone(), &new_job(), NOW);
    let command: JobCommand = (order.command)(&any);
    cell(job::decide_new(&id, &command, order.at), |_| "queued")
}

fn on_job(situation: &job_situations::Situation, order: &job_commands::Order) -> Cell {
    let command = (order.command)(&situation.job);
    cell(job::decide(&situation.job, &command, order.at), |facts| {
        after(&situation.job, facts, order.at).state.name().as_str()
    })
}

fn after(job: &Job, facts: &[JobFact], at: Timestamp) -> Job {
    let mut after = job.clone();
    for fact in facts {
        job::apply(&mut after, fact, at).expect("a decided fact folds");
    }
    after
}

/// Every reason that a job has after some command, where no executor gave one of its own.
pub(crate) fn state_reasons() -> BTreeSet<String> {
    let mut reasons = BTreeSet::new();
    for order in job_commands::topics().iter().flat_map(|topic| &topic.orders) {
        for situation in job_situations::all() {
            let command = (order.command)(&situation.job);
            if let Decision::Facts { facts, .. } = job::decide(&situation.job, &command, order.at) {
                reasons.extend(after(&situation.job, &facts, order.at).state_reason);
            }
        }
    }
    reasons
}

pub(crate) fn operations() -> Walk {
    let tables = operations::topics().into_iter().map(|topic| {
        let columns = topic.orders.iter().map(|order| Column { label: order.label, by: order.by }).collect();
        let absent = Row {
            class: "(none)".to_owned(),
            besides: "",
            state: None,
            cells: topic.orders.iter().map(|order| on_no_operation(&order.command)).collect(),
        };
        let present = operations::situations().into_iter().map(|situation| Row {
            class: situation.operation.status().as_str().to_owned(),
            besides: situation.besides,
            state: Some(situation.operation.status().as_str()),
            cells: topic.orders.iter().map(|order| on_operation(&situation.operation, order)).collect(),
        });
        Table {
            title: topic.title,
            word: topic.word,
            columns,
            rows: std::iter::once(absent).chain(present).collect(),
        }
    });
    Walk { tables: tables.collect() }
}

fn on_no_operation(command: &OperationCommand) -> Cell {
    cell(operation::decide_new(&operations::id(), command, NOW), |_| "pending")
}

fn on_operation(operation: &operation::Operation, order: &operations::Order) -> Cell {
    cell(operation::decide(operation, &order.command, order.at), |facts| {
        let mut after = operation.clone();
        for fact in facts {
            operation::apply(&mut after, fact, order.at).expect("a decided fact folds");
        }
        after.status().as_str()
    })
}

fn cell<F>(decision: Decision<F>, fold: impl FnOnce(&[F]) -> &'static str) -> Cell {
    match decision {
        Decision::Facts { facts, .. } => Cell::Became(fold(&facts)),
        Decision::Nothing => Cell::Nothing,
        Decision::Refused { refusal, evidence, consequences: _ } => {
            Cell::Refused { refusal, kept: evidence.is_some() }
        }
    }
}
