//! What this machine's kernel is and has, as far as every box depends on it.

use crate::sys::landlock_abi::landlock_abi;
use crate::weakness::Weakness;

/// The oldest kernel that is supported.
pub(crate) const KERNEL_FLOOR: (u32, u32) = (5, 15);

/// Facts about the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) kernel: String,
    pub(crate) landlock_abi: u32,
    /// Processors that this process may run on.
    pub(crate) cpus: u32,
}

impl Machine {
    /// Asks the kernel.
    pub(crate) fn ask() -> Self {
        Self {
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            landlock_abi: landlock_abi(),
            cpus: rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count().max(1)),
        }
    }

    /// What cannot be had here, with the reason.
    pub(crate) fn missing(&self) -> Vec<(Weakness, String)> {
        let mut missing = Vec::new();
        if parse_release(&self.kernel).is_none_or(|version| version < KERNEL_FLOOR) {
            let (major, minor) = KERNEL_FLOOR;
            missing.push((
                Weakness::OldKernel,
                format!("the kernel is {}, older than {major}.{minor}", self.kernel),
            ));
        }
        if self.landlock_abi == 0 {
            missing.push((
                Weakness::Landlock,
                "the kernel has no Landlock, or it was not switched on at boot (lsm=landlock,…)"
                    .to_owned(),
            ));
        }
        missing
    }
}

/// The first two numbers of a kernel release.
pub(crate) fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(kernel: &str, landlock_abi: u32) -> Vec<Weakness> {
        let machine = Machine {
            kernel: kernel.into(),
            landlock_abi,
            cpus: 1,
        };
        machine.missing().into_iter().map(|(w, _)| w).collect()
    }

    #[test]
    fn the_floor_is_compared_as_numbers() {
        assert_eq!(machine("5.15.0-91-generic", 1), []);
        assert_eq!(machine("6.1.0-17-amd64", 2), []);
        assert_eq!(machine("5.4.0", 1), [Weakness::OldKernel]);
        assert_eq!(
            machine("4.19.0", 0),
            [Weakness::OldKernel, Weakness::Landlock]
        );
        assert_eq!(machine("strange", 1), [Weakness::OldKernel]);
    }
}
