//! What the figures were taken on, in words. Figures of two machines cannot be compared.

use std::path::Path;

/// The machine in one line: processor, how many, memory, kernel, control groups, and how busy it
/// was with other things.
pub(crate) fn describe() -> String {
    let processors = read("/proc/cpuinfo");
    let model = field(&processors, "model name").unwrap_or("unknown processor");
    let count = processors
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let memory = read("/proc/meminfo");
    let gib = field(&memory, "MemTotal")
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .map_or(0.0, |kib| kib / 1024.0 / 1024.0);
    let kernel = read("/proc/sys/kernel/osrelease");
    let groups = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        2
    } else {
        1
    };
    let user = if rustix::process::geteuid().is_root() {
        "root"
    } else {
        "an ordinary user"
    };
    let load = read("/proc/loadavg");
    format!(
        "{count} × {model}, {gib:.0} GiB, Linux {}, cgroup version {groups}, as {user}; load at the start {}",
        kernel.trim(),
        load.split(' ').next().unwrap_or("unknown"),
    )
}

/// Empty where it cannot be read: a description is no reason to fail.
fn read(path: &str) -> String {
    fs_err::read_to_string(path).unwrap_or_default()
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}
