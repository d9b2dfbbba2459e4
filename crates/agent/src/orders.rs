//! What the launcher says over its line, and what is done about it.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use glovebox_protocol::agent_config::Claim;
use glovebox_protocol::launcher_line::{FromAgent, ToAgent};
use tokio::time::timeout;

use crate::claimed::Claimed;
use crate::error::ApiError;
use crate::idle;
use crate::line::{Line, Packet};
use crate::rehearsal;
use crate::shared::Shared;

/// How long a request waits for the sandbox to become somebody's. The claim is sent before anybody
/// is told of the sandbox, so that this is only ever spent on mistakes.
const CLAIM_PATIENCE: Duration = Duration::from_secs(5);

/// Listens to the launcher until it closes its end, or the agent is gone.
pub(crate) async fn listen(line: Arc<Line>, shared: Weak<Shared>) {
    line.serve(|packet| {
        if let Some(shared) = shared.upgrade() {
            shared.obey(packet);
        }
    })
    .await;
    if let Some(supply) = shared.upgrade().and_then(|shared| shared.supply.clone()) {
        supply.close();
    }
}

impl Shared {
    /// Whose sandbox this is. Where it is nobody's yet, waits for the claim.
    pub(crate) async fn claimed(self: &Arc<Self>) -> Result<&Claimed, ApiError> {
        if let Some(claimed) = self.claimed.get() {
            return Ok(claimed);
        }
        // A claim that was sent before the request is here, whichever the event loop saw first.
        if let Some(line) = &self.line {
            line.take(|packet| self.obey(packet));
        }
        timeout(CLAIM_PATIENCE, self.claimed.wait())
            .await
            .map_err(|_| ApiError::unclaimed())
    }

    fn obey(self: &Arc<Self>, packet: Packet) {
        let (order, descriptor) = match packet {
            Packet::Order(order, descriptor) => (order, descriptor),
            Packet::Unknown(fault) => {
                return (self.words)(&format!("the launcher said something unknown: {fault}"));
            }
        };
        match order {
            ToAgent::Claim { claim } => self.claim(claim),
            ToAgent::Kernel { pid } => self.receive(
                descriptor
                    .map(|wire| (pid, wire))
                    .ok_or_else(|| "its socket did not come with it".into()),
            ),
            ToAgent::NoKernel { reason } => self.receive(Err(reason)),
            ToAgent::PrepareKernel => self.prepare_kernel(),
        }
    }

    /// Makes it somebody's sandbox, once.
    pub(crate) fn claim(self: &Arc<Self>, claim: Claim) {
        let claimed = Claimed::new(claim, self.epoch);
        if self.claimed.set(claimed).is_err() {
            return (self.words)("this sandbox is claimed already; a second claim has no effect");
        }
        if let Some(claimed) = self.claimed.get().filter(|one| !one.is_unclaimed()) {
            self.begin_use(claimed);
        }
    }

    /// From now on it is somebody's to use.
    pub(crate) fn begin_use(self: &Arc<Self>, claimed: &Claimed) {
        self.kernel.warm();
        // The time as nobody's sandbox was no idle time of its owner's.
        drop(self.activity.begin());
        if let Some(limit) = claimed.idle_limit {
            self.keep(tokio::spawn(idle::watch(limit, Arc::downgrade(self))));
        }
    }

    fn receive(&self, kernel: Result<(i32, OwnedFd), String>) {
        match &self.supply {
            Some(supply) => supply.arrive(kernel),
            None => (self.words)("the launcher sent a kernel to a sandbox that starts its own"),
        }
    }

    /// Sees to a kernel before anybody asks for one, and says so when it is there.
    pub(crate) fn prepare_kernel(self: &Arc<Self>) {
        let (line, epoch) = (self.line.clone(), self.epoch);
        let in_advance = self.claimed.get().is_none();
        if in_advance {
            self.keep(tokio::spawn(rehearsal::first_request(Arc::downgrade(self))));
        }
        self.kernel.prepare(in_advance, move || {
            if let Some(line) = line {
                // A launcher that is gone takes the sandbox with it.
                let _ = line.send(FromAgent::KernelReady { epoch });
            }
        });
    }
}
