//! Leaving out one protection, to see that a check of the escape suite notices.
//!
//! Only a build with the feature `mutations` can leave anything out: in any other, `Omissions`
//! is an empty type that says no to everything.

use serde::{Deserialize, Serialize};

macro_rules! mutations {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A protection that a test build can leave out.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Mutation {
            $($(#[$doc])* $variant,)*
        }

        impl Mutation {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name, as the exec helper takes it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

mutations! {
    /// Root stays writable where its layers allow it; that is nowhere, so `nosuid` and `nodev` go.
    RootFlags = "root-flags",
    /// The workspace may hold programs that gain privileges, and devices.
    WorkspaceFlags = "workspace-flags",
    /// The same for `/tmp`.
    TmpFlags = "tmp-flags",
    /// The same for `/dev/shm`, and it may hold programs.
    ShmFlags = "shm-flags",
    /// `/dev` stays writable.
    DevFlags = "dev-flags",
    /// `/proc` stays writable and may hold programs.
    ProcFlags = "proc-flags",
    /// `/proc` shows processes of others.
    ProcHidepid = "proc-hidepid",
    /// `/proc` shows more than processes.
    ProcSubset = "proc-subset",
    /// The host's tree stays mounted below `/mnt`.
    OldRoot = "old-root",
    /// The workload's list of system calls.
    SeccompWorkload = "seccomp-workload",
    /// The workload's list of socket families.
    SeccompFamilies = "seccomp-families",
    /// What is answered in the list's place: attributes, record locks, the limit of cores.
    SeccompAnswers = "seccomp-answers",
    /// The agent's list of system calls.
    SeccompAgent = "seccomp-agent",
    /// The workload's Landlock rules.
    LandlockWorkload = "landlock-workload",
    /// The agent's Landlock rules.
    LandlockAgent = "landlock-agent",
    /// The bounding set stays full.
    BoundingSet = "bounding-set",
    /// The workload keeps the agent's capabilities.
    Capabilities = "capabilities",
    /// The securebits stay open.
    Securebits = "securebits",
    /// Programs may gain privileges.
    NoNewPrivileges = "no-new-privileges",
    /// The host's network.
    NetworkNamespace = "network-namespace",
    /// The pod's processes.
    ProcessNamespace = "process-namespace",
    /// The host's message queues.
    IpcNamespace = "ipc-namespace",
    /// The host's name.
    UtsNamespace = "uts-namespace",
    /// The host's view of control groups.
    CgroupNamespace = "cgroup-namespace",
    /// Every box has the ids of the first.
    UniqueIds = "unique-ids",
    /// `setgroups` stays allowed.
    Setgroups = "setgroups",
    /// No limit on memory.
    MemoryLimit = "memory-limit",
    /// No limit on swap.
    SwapLimit = "swap-limit",
    /// No limit on processes.
    ProcessLimit = "process-limit",
    /// No limit on processor time.
    CpuLimit = "cpu-limit",
    /// The workload stays in the agent's control group.
    WorkCgroup = "work-cgroup",
    /// No size of the workspace.
    WorkspaceSize = "workspace-size",
    /// No number of files of the workspace.
    WorkspaceInodes = "workspace-inodes",
    /// Descriptors of the launcher stay open.
    CloseDescriptors = "close-descriptors",
    /// Descriptors of the agent, or of the template, stay open in the workload.
    CloseWorkloadDescriptors = "close-workload-descriptors",
    /// What the kernel counts for a user is limited as for the host's.
    UserCounts = "user-counts",
    /// Limits of a process are as the host has them.
    ResourceLimits = "resource-limits",
    /// Crashes leave core files.
    CoreLimit = "core-limit",
    /// The workload stays in the agent's session.
    Session = "session",
    /// Copies of a template go on with its generators of random numbers.
    Reseed = "reseed",
    /// Kernels are copied from any template, whoever it was started for.
    TrustDomain = "trust-domain",
}

/// What is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Omissions {
    #[cfg(feature = "mutations")]
    left_out: Vec<Mutation>,
    #[cfg(not(feature = "mutations"))]
    left_out: (),
}

impl Omissions {
    /// What is left out of everything that this program makes: the names, one a line, in the file
    /// beside it that is called as it is with `.mutations` behind.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub fn of_this_program() -> Self {
        let Ok(program) = fs_err::read_link("/proc/self/exe") else {
            return Self::default();
        };
        let mut path = program.into_os_string();
        path.push(".mutations");
        Self::parse(&fs_err::read_to_string(std::path::PathBuf::from(path)).unwrap_or_default())
    }

    /// Nothing.
    #[cfg(not(feature = "mutations"))]
    #[must_use]
    pub const fn of_this_program() -> Self {
        Self { left_out: () }
    }

    /// What a launcher of a test build has left for the exec helper of the box.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub fn of_this_box() -> Self {
        Self::parse(&fs_err::read_to_string("/dev/mutations").unwrap_or_default())
    }

    /// Nothing.
    #[cfg(not(feature = "mutations"))]
    #[must_use]
    pub const fn of_this_box() -> Self {
        Self { left_out: () }
    }

    /// Writes the names where the exec helper finds them.
    #[cfg(feature = "mutations")]
    pub(crate) fn leave_for_exec_helper(&self, dev: &str) -> rustix::io::Result<()> {
        if self.left_out.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = self
            .left_out
            .iter()
            .map(|mutation| mutation.name())
            .collect();
        fs_err::write(format!("{dev}/mutations"), names.join("\n"))
            .map_err(|_| rustix::io::Errno::IO)
    }

    #[cfg(feature = "mutations")]
    fn parse(text: &str) -> Self {
        let named = |line: &str| {
            let mut all = Mutation::ALL.iter();
            all.find(|mutation| mutation.name() == line.trim()).copied()
        };
        Self {
            left_out: text.lines().filter_map(named).collect(),
        }
    }

    /// Leaves these out.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub const fn of(left_out: Vec<Mutation>) -> Self {
        Self { left_out }
    }

    /// What is left out of one box: these, and what its spec names.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub fn with(&self, spec: &crate::control::BoxSpec) -> Self {
        let mut left_out = self.left_out.clone();
        left_out.extend(&spec.mutations);
        Self { left_out }
    }

    /// What is left out of one box.
    #[cfg(not(feature = "mutations"))]
    #[must_use]
    pub const fn with(&self, _spec: &crate::control::BoxSpec) -> Self {
        Self { left_out: () }
    }

    /// Whether this is left out. Always `false` in a build that is shipped.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub fn omits(&self, mutation: Mutation) -> bool {
        self.left_out.contains(&mutation)
    }

    /// Whether this is left out. Always `false` in a build that is shipped.
    #[cfg(not(feature = "mutations"))]
    #[must_use]
    pub const fn omits(&self, _mutation: Mutation) -> bool {
        let () = self.left_out;
        false
    }
}
