//! What the figures were taken on, in words, and what the machine as a whole is doing. Figures of
//! two machines cannot be compared.

use std::path::Path;
use std::time::Duration;

/// How long is looked at what others do.
const QUIET: Duration = Duration::from_secs(1);

/// The machine that is measured on.
#[derive(Debug)]
pub(crate) struct Machine {
    processors: String,
    memory: String,
    kernel: String,
    groups: &'static str,
    user: &'static str,
    /// How much other programs took of the processors before anything was measured.
    others: String,
}

impl Machine {
    /// Looks at the machine for a second, in which this program does nothing.
    pub(crate) fn look() -> Self {
        let processors = read("/proc/cpuinfo");
        let model = field(&processors, "model name").unwrap_or("unknown processor");
        let count = processors
            .lines()
            .filter(|line| line.starts_with("processor"))
            .count();
        let version_two = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
        let is_root = rustix::process::geteuid().is_root();
        Self {
            processors: format!("{count} × {model}"),
            memory: format!("{:.0} GiB", meminfo_mib(&["MemTotal"]) / 1024.0),
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            groups: if version_two {
                "version 2"
            } else {
                "version 1"
            },
            user: if is_root { "root" } else { "an ordinary user" },
            others: format!("{:.0} % of the processors", others_percent(count)),
        }
    }

    /// What there is to say, each with its title.
    pub(crate) fn rows(&self) -> [(&'static str, &str); 6] {
        [
            ("processors", &self.processors),
            ("memory", &self.memory),
            ("kernel", &self.kernel),
            ("control groups", self.groups),
            ("run as", self.user),
            ("taken by other programs before the start", &self.others),
        ]
    }

    /// The same in one line.
    pub(crate) fn line(&self) -> String {
        self.rows()
            .map(|(title, what)| format!("{title}: {what}"))
            .join("; ")
    }
}

/// How much of the processors is taken while this program does nothing.
fn others_percent(processors: usize) -> f64 {
    let (begun, busy) = (std::time::Instant::now(), busy_ms());
    // Nothing is waited for: the point is that nothing happens.
    std::thread::park_timeout(QUIET);
    let passed = begun.elapsed().as_secs_f64() * 1000.0;
    (busy_ms() - busy) / passed / processors.max(1) as f64 * 100.0
}

/// Processor time that all programs and the kernel have used since the machine started, in
/// milliseconds of one processor.
pub(crate) fn busy_ms() -> f64 {
    let stat = read("/proc/stat");
    let fields: Vec<f64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; what follows is counted in the first.
    let ticks: f64 = [0, 1, 2, 5, 6, 7]
        .iter()
        .filter_map(|at| fields.get(*at))
        .sum();
    ticks * 1000.0 / rustix::param::clock_ticks_per_second() as f64
}

/// Processor time that Linux's own monitors of memory accesses (DAMON) have used, in milliseconds:
/// where one runs it looks at every page for every process that shares it, so that its part grows
/// with the sandboxes, and none of it is done for them. Nothing where there is none.
pub(crate) fn memory_monitors_ms() -> f64 {
    let Ok(processes) = fs_err::read_dir("/proc") else {
        return 0.0;
    };
    let ticks: f64 = processes
        .flatten()
        .filter_map(|process| fs_err::read_to_string(process.path().join("stat")).ok())
        .filter_map(|stat| {
            let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
            let fields: Vec<&str> = rest.split(' ').collect();
            // Of user and of system.
            let used =
                fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
            name.starts_with("kdamond").then_some(used)
        })
        .sum();
    ticks * 1000.0 / rustix::param::clock_ticks_per_second() as f64
}

/// Memory that programs could still get, in MiB.
pub(crate) fn available_mib() -> f64 {
    meminfo_mib(&["MemAvailable"])
}

/// Memory that Linux holds itself and cannot give back at once, in MiB: objects, stacks of
/// processes, page tables, and what it keeps for each processor.
pub(crate) fn kernel_memory_mib() -> f64 {
    meminfo_mib(&["SUnreclaim", "KernelStack", "PageTables", "Percpu"])
}

fn meminfo_mib(names: &[&str]) -> f64 {
    let text = read("/proc/meminfo");
    let kib = |name: &&str| field(&text, name)?.split(' ').next()?.parse::<f64>().ok();
    names.iter().filter_map(kib).sum::<f64>() / 1024.0
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
