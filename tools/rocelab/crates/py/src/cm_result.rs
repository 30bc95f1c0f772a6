// SPDX-License-Identifier: GPL-2.0-or-later
//! The messages of the CM as Python dictionaries (docs/formats/analysis.md).

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use roce::address;
use roce::cm::{CmReply, CmRequest, reject_reason};
use roce::flow::Exchange;

/// A row for each exchange.
pub(crate) fn exchange_rows<'py>(
    py: Python<'py>,
    exchanges: &[Exchange],
) -> PyResult<Bound<'py, PyList>> {
    let rows = PyList::empty(py);
    for one in exchanges {
        let row = PyDict::new(py);
        row.set_item("from", address(one.requester).to_string())?;
        row.set_item("to", address(one.responder).to_string())?;
        row.set_item("connection", one.connection())?;
        row.set_item("state", one.state())?;
        row.set_item("file", one.first.file)?;
        row.set_item("packet", one.first.packet)?;
        row.set_item("first_ns", one.first.time_ns)?;
        row.set_item("last_ns", one.last_ns)?;
        row.set_item("requests", one.requests)?;
        row.set_item("mras", one.received)?;
        row.set_item("request", request_row(py, &one.request)?)?;
        row.set_item("reply", one.reply.map(|reply| reply_row(py, &reply)).transpose()?)?;
        let reject = PyDict::new(py);
        if let Some((rejected, by)) = one.reject {
            reject.set_item("by", by.name())?;
            reject.set_item("of", ["req", "rep"].get(usize::from(rejected.of)))?;
            reject.set_item("reason", rejected.reason)?;
            reject.set_item("text", reject_reason(rejected.reason))?;
        }
        row.set_item("reject", one.reject.map(|_| reject))?;
        row.set_item("disconnected_by", one.disconnect.map(roce::flow::End::name))?;
        rows.append(row)?;
    }
    Ok(rows)
}

fn request_row<'py>(py: Python<'py>, request: &CmRequest) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("qpn", request.qpn)?;
    row.set_item("service_id", format!("{:#018x}", request.service_id))?;
    row.set_item("port_space", request.port().map(|(space, _)| space))?;
    row.set_item("port", request.port().map(|(_, port)| port))?;
    row.set_item("service", ["RC", "UC", "RD"].get(usize::from(request.service_type)))?;
    row.set_item("path_mtu", request.mtu())?;
    row.set_item("retries", request.retries)?;
    row.set_item("rnr_retries", request.rnr_retries)?;
    row.set_item("ack_timeout_ns", request.ack_timeout_ns())?;
    row.set_item("cm_retries", request.cm_retries)?;
    row.set_item("responder_resources", request.responder_resources)?;
    row.set_item("initiator_depth", request.initiator_depth)?;
    Ok(row)
}

fn reply_row<'py>(py: Python<'py>, reply: &CmReply) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("qpn", reply.qpn)?;
    row.set_item("responder_resources", reply.responder_resources)?;
    row.set_item("initiator_depth", reply.initiator_depth)?;
    Ok(row)
}
