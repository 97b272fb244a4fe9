//! What the operator's file says of a connector's input and result. Nothing goes out that does not fit, and nothing that came back is
//! taken for a result that does not.

use std::sync::Arc;

use engine::InputSchema;
use engine::{Assignment, Contract, Failure, Output, Polled, Produced};

use super::HttpConnector;

impl HttpConnector {
    /// What it promises to whoever invokes it.
    pub fn contract(&self) -> Contract {
        let connector = &self.connector;
        Contract {
            description: connector.description.clone(),
            parameters: connector.parameters.clone().map(|schema| Arc::new(schema) as _),
            approval: connector.approval,
            digest: Some(connector.digest),
        }
    }

    /// Why this input is not sent, if it does not fit.
    pub(super) fn unfit_input(&self, assignment: &Assignment) -> Option<Failure> {
        let misfit = self.connector.parameters.as_ref()?.check(&assignment.input).err()?;
        Some(Failure::permanent("parameters-schema-invalid", format!("the input: {misfit}")))
    }

    /// The same, unless its result does not fit.
    pub(super) fn fit_to_keep(&self, produced: Produced) -> Produced {
        let output = if let Produced::Completed(output) = &produced { Some(output) } else { None };
        output.and_then(|output| self.unfit_result(output)).map_or(produced, Produced::Failed)
    }

    /// The same for what a service says later.
    pub(super) fn fit_to_take(&self, polled: Polled) -> Polled {
        let output = if let Polled::Completed(output) = &polled { Some(output) } else { None };
        output.and_then(|output| self.unfit_result(output)).map_or(polled, Polled::Failed)
    }

    fn unfit_result(&self, output: &Output) -> Option<Failure> {
        let data = output.data.as_deref().unwrap_or(b"null");
        let misfit = self.connector.result_contract.as_ref()?.check(data).err()?;
        Some(Failure::permanent("result-contract-error", format!("the result: {misfit}")))
    }
}
