//! What a container is meant to be. Every value is compared with what the engine made of it, see
//! [`crate::compare`].

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    ResourcesUlimits,
};
use glovebox_protocol::agent_config::AgentIds;
use glovebox_protocol::limits::Limits;

use crate::labels::Labels;

const MIB: u64 = 1024 * 1024;

/// The agent's own share of memory, on top of what the sandbox and its workspace may take: there
/// is one control group for both.
const AGENT_MEMORY: u64 = 32 * MIB;

/// The agent's own threads, which count as processes.
const AGENT_THREADS: u32 = 6;

/// Descriptors for the agent on top of what one process of a workload may hold.
const AGENT_FILES: u64 = 1024;

const AGENT: [&str; 2] = ["/opt/glovebox/bin/glovebox-agent", "--stdio"];

/// Bytes of `/tmp` for each file that it may hold.
const BYTES_PER_INODE: u64 = 4096;

/// What a container may see of the host's kernel without need, covered with nothing: what engines
/// cover by themselves, and what they leave. The agent needs the memory group in
/// `/sys/fs/cgroup`, which Landlock keeps from workloads.
const MASKED: [&str; 37] = [
    "/etc/resolv.conf",
    "/dev/mqueue",
    "/proc/acpi",
    "/proc/asound",
    "/proc/buddyinfo",
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/diskstats",
    "/proc/interrupts",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/modules",
    "/proc/pagetypeinfo",
    "/proc/partitions",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/slabinfo",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/random/boot_id",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/tty",
    "/proc/version",
    "/proc/vmallocinfo",
    "/proc/zoneinfo",
    "/sys/block",
    "/sys/bus",
    "/sys/class",
    "/sys/devices",
    "/sys/firmware",
    "/sys/kernel",
    "/sys/module",
];

/// What engines make read-only by themselves.
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// The body of the request that makes a container.
pub(crate) fn container(
    image: &str,
    runtime: Option<&str>,
    limits: &Limits,
    labels: &Labels,
) -> ContainerCreateBody {
    let id = AgentIds::WORKLOAD;
    ContainerCreateBody {
        image: Some(image.into()),
        entrypoint: Some(Vec::new()),
        cmd: Some(AGENT.map(String::from).to_vec()),
        user: Some(format!("{id}:{id}")),
        hostname: Some("glovebox".into()),
        working_dir: Some("/workspace".into()),
        open_stdin: Some(true),
        // Its input stays open when whoever is attached goes away.
        stdin_once: Some(false),
        tty: Some(false),
        attach_stdin: Some(false),
        attach_stdout: Some(false),
        attach_stderr: Some(false),
        stop_signal: Some("SIGKILL".into()),
        labels: Some(labels.to_map()),
        host_config: Some(host_config(runtime, limits)),
        ..Default::default()
    }
}

fn host_config(runtime: Option<&str>, limits: &Limits) -> HostConfig {
    let memory = limits.memory_bytes + limits.workspace_bytes + AGENT_MEMORY;
    HostConfig {
        network_mode: Some("none".into()),
        readonly_rootfs: Some(true),
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".into()]),
        security_opt: Some(vec![
            "no-new-privileges".into(),
            format!("seccomp={}", glovebox_box::container_profile()),
        ]),
        pids_limit: Some(i64::from(limits.processes + AGENT_THREADS)),
        memory: Some(signed(memory)),
        // The same number: no swap.
        memory_swap: Some(signed(memory)),
        nano_cpus: Some(i64::from(limits.cpu_millis) * 1_000_000),
        tmpfs: Some(file_systems(limits)),
        shm_size: Some(signed(limits.shm_bytes)),
        ulimits: Some(vec![
            ulimit("nofile", limits.open_files + AGENT_FILES),
            ulimit("fsize", limits.file_size_bytes),
            ulimit("core", 0),
        ]),
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".into()),
            config: None,
        }),
        init: Some(false),
        ipc_mode: Some("private".into()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        runtime: runtime.map(Into::into),
        masked_paths: Some(MASKED.map(String::from).to_vec()),
        readonly_paths: Some(READ_ONLY.map(String::from).to_vec()),
        ..Default::default()
    }
}

/// Everything that can be written, each with its own limits; what they hold counts as memory.
fn file_systems(limits: &Limits) -> HashMap<String, String> {
    let id = AgentIds::WORKLOAD;
    let common = "rw,exec,nosuid,nodev";
    HashMap::from([
        (
            "/workspace".into(),
            format!(
                "{common},size={},nr_inodes={},uid={id},gid={id},mode=0700",
                limits.workspace_bytes,
                // The folder itself takes one.
                limits.workspace_inodes + 1
            ),
        ),
        (
            "/tmp".into(),
            format!(
                "{common},size={},nr_inodes={},uid={id},gid={id},mode=0700",
                limits.tmp_bytes,
                (limits.tmp_bytes / BYTES_PER_INODE).max(1024)
            ),
        ),
    ])
}

fn ulimit(name: &str, value: u64) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.into()),
        soft: Some(signed(value)),
        hard: Some(signed(value)),
    }
}

/// Engines count in signed numbers; limits are far below their end.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
