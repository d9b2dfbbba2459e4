//! The checks themselves.

use std::os::unix::fs::MetadataExt as _;

use glovebox_protocol::PROTOCOL_VERSION;
use glovebox_protocol::gateway::{Check, CheckStatus};
use glovebox_protocol::sign::WARN_MS;
use glovebox_runtime::{Capability, Examined};

use super::{check, with_fix};
use crate::auth::Caller;
use crate::config::{Listen, Transport, containers_reach};
use crate::error::chain;
use crate::folder;
use crate::state::Shared;

use CheckStatus::{Fail, Pass, Warn};

/// What the runtime says of itself, judged.
pub(super) fn of_runtime(shared: &Shared, examined: &Examined) -> [Check; 5] {
    [
        limits(shared),
        workspace(shared),
        check(
            "image.allowed",
            Pass,
            format!("sandboxes may be made of {}", shared.rules.images),
        ),
        present(shared, examined),
        protocol(examined),
    ]
}

/// What is the gateway's own.
pub(super) fn of_gateway(shared: &Shared, caller: Caller) -> [Check; 6] {
    [
        clock(caller),
        secrets(shared, caller),
        state_folder(shared),
        socket(shared),
        listen(shared),
        firewall(shared),
    ]
}

fn limits(shared: &Shared) -> Check {
    let id = "runtime.limits";
    let capabilities = shared.runtime.describe().capabilities;
    let wanted = [
        (Capability::MemoryLimit, "memory"),
        (Capability::CpuLimit, "processor time"),
        (Capability::ProcessLimit, "processes"),
    ];
    let missing: Vec<_> = wanted
        .into_iter()
        .filter(|(capability, _)| !capabilities.has(*capability))
        .map(|(_, name)| name)
        .collect();
    if missing.is_empty() {
        return check(id, Pass, "memory, processor time and processes are limited");
    }
    with_fix(
        check(id, Fail, format!("not limited: {}", missing.join(", "))),
        "give the runtime the control group controllers memory, cpu and pids",
    )
}

fn workspace(shared: &Shared) -> Check {
    let id = "storage.workspace_limit";
    if shared
        .runtime
        .describe()
        .capabilities
        .has(Capability::WorkspaceBytes)
    {
        return check(id, Pass, "the size of a workspace is limited");
    }
    with_fix(
        check(id, Warn, "a workspace can fill the host's disk"),
        "use storage whose volumes can be bounded, or accept it on the profile",
    )
}

fn present(shared: &Shared, examined: &Examined) -> Check {
    let id = "image.present";
    if !shared.runtime.has_images() {
        let message = "this runtime makes sandboxes of its own root tree, not of images";
        return check(id, Pass, message);
    }
    let present = examined
        .images
        .iter()
        .filter(|image| image.digest.is_some());
    let names: Vec<_> = present.map(|image| image.reference.as_str()).collect();
    if names.is_empty() {
        return with_fix(
            check(id, Fail, "none of the allowed images is on this host"),
            "build it on this host; the deployment guide says how",
        );
    }
    check(id, Pass, format!("present: {}", names.join(", ")))
}

fn protocol(examined: &Examined) -> Check {
    let id = "image.protocol";
    let other = examined.images.iter().find_map(|image| {
        let theirs = image
            .protocol
            .filter(|theirs| *theirs != PROTOCOL_VERSION)?;
        Some((image.reference.as_str(), theirs))
    });
    match other {
        None => check(
            id,
            Pass,
            format!("agents speak protocol {PROTOCOL_VERSION}"),
        ),
        Some((image, theirs)) => with_fix(
            check(
                id,
                Fail,
                format!(
                    "the agent in {image} speaks protocol {theirs}; the gateway speaks {PROTOCOL_VERSION}"
                ),
            ),
            "build the image anew with the gateway's version",
        ),
    }
}

fn clock(caller: Caller) -> Check {
    let id = "auth.clock_skew";
    let off_ms = caller.verified.off_ms;
    if off_ms.abs() <= WARN_MS {
        let message = format!("the server's clock is {off_ms} ms ahead of the gateway's");
        return check(id, Pass, message);
    }
    with_fix(
        check(
            id,
            Warn,
            format!(
                "the server's clock is {off_ms} ms ahead of the gateway's; from 60 000 ms either way requests are refused"
            ),
        ),
        "let both machines set their clocks by the network (NTP)",
    )
}

fn secrets(shared: &Shared, caller: Caller) -> Check {
    let id = "auth.secrets";
    let credentials = shared.credentials(caller.credential);
    let names: Vec<_> = credentials.iter().map(|one| one.id.to_string()).collect();
    let names = names.join(", ");
    match credentials.as_slice() {
        [_] => check(id, Pass, format!("one credential is accepted: {names}")),
        [new, _] if new.is_yours => with_fix(
            check(
                id,
                Warn,
                format!("an old credential is still accepted: {names}"),
            ),
            "take the second one out of GATEWAY_CREDENTIALS",
        ),
        _ => with_fix(
            check(
                id,
                Warn,
                format!("the server still uses the old credential: {names}"),
            ),
            "let the server use the new credential, then take the old one out",
        ),
    }
}

fn state_folder(shared: &Shared) -> Check {
    let id = "state.folder";
    let Some(path) = &shared.place.state else {
        return check(id, Pass, "this gateway keeps nothing on disk");
    };
    match folder::check(path) {
        Ok(()) => check(
            id,
            Pass,
            format!("{} is the gateway's alone", path.display()),
        ),
        Err(error) => with_fix(
            check(id, Fail, chain("looking at the state folder", &error)),
            "give the folder to the gateway's user with mode 700, its files with mode 600",
        ),
    }
}

fn socket(shared: &Shared) -> Check {
    let id = "state.socket";
    let Some(Listen::Unix(path)) = &shared.place.listen else {
        return check(id, Pass, "the gateway listens at no Unix socket");
    };
    match fs_err::symlink_metadata(path) {
        Ok(metadata) if metadata.mode() & 0o007 == 0 => {
            check(id, Pass, format!("{} is closed to others", path.display()))
        }
        Ok(_) => with_fix(
            check(
                id,
                Fail,
                format!("everybody can connect to {}", path.display()),
            ),
            format!("chmod 600 {}", path.display()),
        ),
        Err(error) => with_fix(
            check(id, Fail, chain("looking at the gateway's socket", &error)),
            "restart the gateway",
        ),
    }
}

fn listen(shared: &Shared) -> Check {
    let id = "network.listen";
    match &shared.place.listen {
        Some(Listen::Tcp(address, _)) if containers_reach(address.ip()) => with_fix(
            check(
                id,
                Warn,
                format!("containers on this host may reach {address}; that was accepted"),
            ),
            "listen at an address that only the server reaches",
        ),
        Some(Listen::Tcp(address, Transport::Plain)) => with_fix(
            check(
                id,
                Warn,
                format!("plain HTTP at {address}, for a server on the same host"),
            ),
            "leave GATEWAY_INSECURE_HTTP out",
        ),
        Some(Listen::Tcp(address, Transport::Tls)) => {
            check(id, Pass, format!("TLS 1.3 at {address}"))
        }
        Some(Listen::Unix(path)) => check(id, Pass, format!("a Unix socket, {}", path.display())),
        None => check(id, Pass, "the gateway is part of another program"),
    }
}

fn firewall(shared: &Shared) -> Check {
    let id = "network.host_firewall";
    if shared
        .runtime
        .describe()
        .capabilities
        .has(Capability::NoNetwork)
    {
        let message = "sandboxes have no network at all; no firewall is needed to keep them in";
        return check(id, Pass, message);
    }
    with_fix(
        check(
            id,
            Fail,
            "this runtime does not keep sandboxes off the network",
        ),
        "use a runtime that does",
    )
}
