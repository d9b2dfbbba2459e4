//! The variables that every program in a sandbox starts with.

/// Names and values, the same for programs, for a kernel, and for the process that kernels are
/// copied from. `threads` bounds what numerical libraries start by themselves.
#[must_use]
pub fn workload_environment(threads: u32) -> Vec<(&'static str, String)> {
    let threads = threads.to_string();
    [
        ("PATH", "/opt/python/bin:/usr/bin:/bin"),
        ("HOME", "/tmp"),
        ("USER", "sandbox"),
        ("LOGNAME", "sandbox"),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("SHELL", "/bin/bash"),
        ("PYTHONUNBUFFERED", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("MPLCONFIGDIR", "/tmp/.config/matplotlib"),
        // In a kernel this backend is the way to the inline one.
        (MATPLOTLIB_BACKEND, "module://glovebox_backend"),
        ("XDG_CACHE_HOME", "/tmp/.cache"),
        ("XDG_CONFIG_HOME", "/tmp/.config"),
        ("OPENBLAS_NUM_THREADS", &threads),
        ("OMP_NUM_THREADS", &threads),
    ]
    .into_iter()
    .map(|(name, value)| (name, value.to_owned()))
    .collect()
}

/// The variable that chooses matplotlib's backend. Ours is a module of the root tree: where there
/// is no such tree the variable must not be set.
pub const MATPLOTLIB_BACKEND: &str = "MPLBACKEND";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_variable_is_named_once() {
        let variables = workload_environment(2);
        let names: BTreeSet<_> = variables.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), variables.len());
    }
}
