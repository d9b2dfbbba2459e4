//! Compares a container with what it was meant to be, before anything runs in it. Engines have
//! been seen to drop a limit without a word.

use std::collections::HashMap;
use std::fmt::Debug;

use bollard::models::{
    ContainerConfig, ContainerCreateBody, ContainerInspectResponse, HostConfig, NetworkSettings,
    ResourcesUlimits,
};

/// One value that is not as it was meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is {found}, and was to be {meant}")]
pub(crate) struct Difference {
    /// What, by the engine's own name for it.
    pub(crate) name: &'static str,
    found: String,
    meant: String,
}

/// What is not as it was meant.
pub(crate) fn differences(
    meant: &ContainerCreateBody,
    found: &ContainerInspectResponse,
) -> Vec<Difference> {
    let mut all = Vec::new();
    let empty = (
        HostConfig::default(),
        ContainerConfig::default(),
        NetworkSettings::default(),
    );
    let host = found.host_config.as_ref().unwrap_or(&empty.0);
    let wanted = meant.host_config.as_ref().unwrap_or(&empty.0);
    let config = found.config.as_ref().unwrap_or(&empty.1);
    let network = found.network_settings.as_ref().unwrap_or(&empty.2);
    let mut compare = Compare(&mut all);

    compare.same("Image", &meant.image, &found.image);
    compare.same("User", &meant.user, &config.user);
    compare.same("Cmd", &meant.cmd, &config.cmd);
    compare.none("Entrypoint", config.entrypoint.iter().flatten());
    compare.same("Tty", &meant.tty, &config.tty);
    compare.same("OpenStdin", &meant.open_stdin, &config.open_stdin);
    compare.same("StdinOnce", &meant.stdin_once, &config.stdin_once);
    compare.same("Labels", &of_ours(&meant.labels), &of_ours(&config.labels));

    compare.same("NetworkMode", &wanted.network_mode, &host.network_mode);
    compare.none("ExtraHosts", host.extra_hosts.iter().flatten());
    compare.none("PortBindings", host.port_bindings.iter().flatten());
    let networks = network.networks.iter().flatten().map(|(name, _)| name);
    compare.none("Networks", networks.filter(|name| *name != "none"));
    compare.same(
        "ReadonlyRootfs",
        &wanted.readonly_rootfs,
        &host.readonly_rootfs,
    );
    compare.same("Privileged", &wanted.privileged, &host.privileged);
    compare.same("CapDrop", &wanted.cap_drop, &host.cap_drop);
    compare.none("CapAdd", host.cap_add.iter().flatten());
    compare.same("SecurityOpt", &wanted.security_opt, &host.security_opt);
    compare.same("PidsLimit", &wanted.pids_limit, &host.pids_limit);
    compare.same("Memory", &wanted.memory, &host.memory);
    compare.same("MemorySwap", &wanted.memory_swap, &host.memory_swap);
    compare.same("NanoCpus", &wanted.nano_cpus, &host.nano_cpus);
    compare.same("Tmpfs", &wanted.tmpfs, &host.tmpfs);
    compare.same("ShmSize", &wanted.shm_size, &host.shm_size);
    compare.same("Ulimits", &sorted(&wanted.ulimits), &sorted(&host.ulimits));
    let log = |config: &HostConfig| config.log_config.as_ref().and_then(|log| log.typ.clone());
    compare.same("LogConfig", &log(wanted), &log(host));
    compare.same("Init", &wanted.init, &host.init);
    compare.same("IpcMode", &wanted.ipc_mode, &host.ipc_mode);
    compare.same("CgroupnsMode", &wanted.cgroupns_mode, &host.cgroupns_mode);
    compare.same("MaskedPaths", &wanted.masked_paths, &host.masked_paths);
    compare.same(
        "ReadonlyPaths",
        &wanted.readonly_paths,
        &host.readonly_paths,
    );
    if wanted.runtime.is_some() {
        compare.same("Runtime", &wanted.runtime, &host.runtime);
    }
    for (name, value) in [
        ("PidMode", &host.pid_mode),
        ("UTSMode", &host.uts_mode),
        ("CgroupParent", &host.cgroup_parent),
    ] {
        compare.none(name, value.iter().filter(|value| !value.is_empty()));
    }
    compare.none("Binds", host.binds.iter().flatten());
    compare.none("VolumesFrom", host.volumes_from.iter().flatten());
    compare.none("Devices", host.devices.iter().flatten());
    compare.none("DeviceRequests", host.device_requests.iter().flatten());
    compare.none("GroupAdd", host.group_add.iter().flatten());
    compare.none("Sysctls", host.sysctls.iter().flatten());
    compare.none("Mounts", host.mounts.iter().flatten());
    compare.none("MountPoints", found.mounts.iter().flatten());
    all
}

struct Compare<'a>(&'a mut Vec<Difference>);

impl Compare<'_> {
    fn same<T: PartialEq + Debug>(&mut self, name: &'static str, meant: &T, found: &T) {
        if meant != found {
            self.0.push(Difference {
                name,
                found: shortened(found),
                meant: shortened(meant),
            });
        }
    }

    fn none<T: Debug>(&mut self, name: &'static str, found: impl Iterator<Item = T>) {
        let found: Vec<T> = found.collect();
        if !found.is_empty() {
            self.0.push(Difference {
                name,
                found: shortened(&found),
                meant: "empty".into(),
            });
        }
    }
}

/// The image may have labels too.
fn of_ours(labels: &Option<HashMap<String, String>>) -> Vec<(String, String)> {
    let ours = |(name, _): &(&String, &String)| {
        name.starts_with("glovebox.") && *name != crate::labels::AGENT
    };
    let mut labels: Vec<_> = labels
        .iter()
        .flatten()
        .filter(ours)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    labels.sort();
    labels
}

fn sorted(
    ulimits: &Option<Vec<ResourcesUlimits>>,
) -> Vec<(Option<String>, Option<i64>, Option<i64>)> {
    let ulimits = ulimits.iter().flatten();
    let mut ulimits: Vec<_> = ulimits
        .map(|limit| (limit.name.clone(), limit.soft, limit.hard))
        .collect();
    ulimits.sort();
    ulimits
}

/// A system call filter is not read in an error message.
fn shortened(value: &impl Debug) -> String {
    let mut text = format!("{value:?}");
    if let Some((end, _)) = text.char_indices().nth(200) {
        text.truncate(end);
        text.push('…');
    }
    text
}
