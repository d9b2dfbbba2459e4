//! Kernels that come ready-made from the launcher, copied from its template.
//!
//! The first one comes unasked, each later one when it is asked for. At most one is on its way.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use glovebox_protocol::launcher_line::FromAgent;
use tokio::sync::Notify;

use super::starting::Starting;
use crate::line::Line;
use crate::lock::Locked;
use crate::process::{Tenant, Workload};

/// Where kernels come from that nobody has to start.
pub(crate) struct Supply {
    line: Arc<Line>,
    workload: Arc<Workload>,
    state: Locked<State>,
    changed: Notify,
}

struct State {
    /// Held while one is on its way: it may be in the sandbox before the agent knows its number,
    /// and must not be taken for something that an earlier kernel has left behind.
    owed: Option<Tenant>,
    arrived: Option<Delivery>,
    closed: bool,
}

/// A kernel, or why there is none.
type Delivery = Result<Starting, String>;

impl Supply {
    /// A supply whose first kernel is on its way.
    pub(crate) fn new(line: Arc<Line>, workload: Arc<Workload>) -> Self {
        let owed = Some(workload.tenant());
        Self {
            line,
            workload,
            state: Locked::new(State {
                owed,
                arrived: None,
                closed: false,
            }),
            changed: Notify::new(),
        }
    }

    /// Adopts a kernel that the launcher says is there, or takes down why there is none. One that
    /// nobody waits for is dropped, and ends when its socket closes.
    pub(crate) fn arrive(&self, kernel: Result<(i32, OwnedFd), String>) {
        self.state.with(|state| {
            let Some(tenant) = state.owed.take() else {
                return;
            };
            state.arrived = Some(kernel.and_then(|(pid, wire)| {
                let adopted = Starting::adopt(&self.workload, tenant, pid, wire);
                adopted.map_err(|error| format!("process {pid} cannot be taken over: {error}"))
            }));
        });
        self.changed.notify_one();
    }

    /// Takes down that nothing will come any more.
    pub(crate) fn close(&self) {
        self.state.with(|state| {
            state.closed = true;
            state.owed = None;
        });
        self.changed.notify_one();
    }

    /// The next kernel, asked for unless it is on its way; or why there is none to be had.
    /// Dropping the future loses nothing: what comes is there for the next who asks.
    pub(crate) async fn next(&self) -> Delivery {
        self.state.with(State::forget_ended);
        loop {
            let changed = self.changed.notified();
            match self.state.with(|state| self.take(state)) {
                Some(delivery) => return delivery,
                None => changed.await,
            }
        }
    }

    fn take(&self, state: &mut State) -> Option<Delivery> {
        if let Some(delivery) = state.arrived.take() {
            return Some(delivery);
        }
        if state.owed.is_none() {
            let tenant = self.workload.tenant();
            if state.closed || self.line.send(FromAgent::KernelWanted).is_err() {
                return Some(Err("the launcher is gone".into()));
            }
            state.owed = Some(tenant);
        }
        None
    }
}

impl State {
    /// Drops a kernel that came when nobody waited for it any more, and has ended since.
    fn forget_ended(&mut self) {
        let has_ended = |kernel: &Starting| kernel.child().exit().is_some();
        if matches!(&self.arrived, Some(Ok(kernel)) if has_ended(kernel)) {
            self.arrived = None;
        }
    }
}
