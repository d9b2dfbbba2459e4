//! The system calls of a workload, and what the agent has beside them: an allow-list, everything
//! else does not exist (`ENOSYS`).
//!
//! `ENOSYS` and not "forbidden", because that is what libraries are written for: the C library
//! falls back from `clone3` to `clone`, whose flags can be looked at, and Python from `splice` to
//! copying.

/// A system call and why it is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    pub(crate) number: libc::c_long,
    pub(crate) name: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the reader and for tests"))]
    pub(crate) why: &'static str,
}

macro_rules! allow {
    ($($name:ident: $why:literal,)*) => {
        &[$(Allowed {
            number: libc::$name,
            name: stringify!($name),
            why: $why,
        },)*]
    };
}

/// What a workload may call with any arguments, on every processor.
pub(crate) const WORKLOAD: &[Allowed] = allow! {
    // Files by descriptor.
    SYS_read: "reads files and pipes",
    SYS_write: "writes files and pipes",
    SYS_readv: "the same from several buffers",
    SYS_writev: "the same from several buffers",
    SYS_pread64: "reads at a place: SQLite, Parquet, zip",
    SYS_pwrite64: "writes at a place: SQLite",
    SYS_preadv: "the same from several buffers",
    SYS_pwritev: "the same from several buffers",
    SYS_preadv2: "the same with flags",
    SYS_pwritev2: "the same with flags",
    SYS_lseek: "moves in a file",
    SYS_close: "closes a descriptor",
    SYS_close_range: "subprocess closes what a child must not have",
    SYS_dup: "duplicates a descriptor",
    SYS_dup3: "redirects in shells",
    SYS_fcntl: "flags of descriptors; record locks are answered without one, see LOCK_RECORD",
    SYS_flock: "locks: fontconfig, package caches",
    SYS_ftruncate: "cuts a file",
    SYS_fallocate: "reserves room in a file",
    SYS_fsync: "SQLite's durability",
    SYS_fdatasync: "the same",
    SYS_sync_file_range: "the same, by range",
    SYS_fadvise64: "advice on reading: cp, sort",
    SYS_readahead: "the same",
    SYS_sendfile: "shutil copies with it",
    SYS_copy_file_range: "cp and shutil copy with it",
    SYS_getdents64: "lists a folder",
    SYS_fchdir: "walks trees safely: rm, shutil.rmtree",
    // Files by name.
    SYS_openat: "opens a file",
    SYS_openat2: "opens a file with limits on the way to it",
    SYS_newfstatat: "looks at a file",
    SYS_fstat: "looks at an open file",
    SYS_statx: "the same, newer: coreutils",
    SYS_statfs: "free room: df, pip, LibreOffice",
    SYS_fstatfs: "the same for an open file",
    SYS_faccessat: "asks for a right",
    SYS_faccessat2: "the same with flags",
    SYS_readlinkat: "reads a link",
    SYS_linkat: "names a file a second time",
    SYS_symlinkat: "makes a link",
    SYS_unlinkat: "removes a file",
    SYS_renameat: "renames: every safe save",
    SYS_renameat2: "the same with flags: mv",
    SYS_mkdirat: "makes a folder",
    SYS_mknodat: "mkfifo; devices are refused by the kernel",
    SYS_fchmod: "rights of a file",
    SYS_fchmodat: "rights of a file",
    SYS_fchmodat2: "the same with flags",
    SYS_fchown: "tar and cp -p try; only to the own id",
    SYS_fchownat: "the same",
    SYS_utimensat: "times of a file: cp -p, zip",
    SYS_truncate: "cuts a file by name",
    SYS_chdir: "the working folder",
    SYS_getcwd: "the working folder",
    SYS_umask: "rights of new files",
    SYS_getxattr: "attributes: cp -a, shutil.copystat",
    SYS_lgetxattr: "the same",
    SYS_fgetxattr: "the same",
    SYS_listxattr: "the same",
    SYS_llistxattr: "the same",
    SYS_flistxattr: "the same",
    SYS_setxattr: "the same; answered as not supported, see SET_ATTRIBUTE",
    SYS_lsetxattr: "the same",
    SYS_fsetxattr: "the same",
    SYS_removexattr: "the same",
    SYS_lremovexattr: "the same",
    SYS_fremovexattr: "the same",
    SYS_inotify_init1: "watches files: LibreOffice, development servers; the overlay keeps it private",
    SYS_inotify_add_watch: "the same",
    SYS_inotify_rm_watch: "the same",
    // Memory.
    SYS_mmap: "every program",
    SYS_munmap: "every program",
    SYS_mprotect: "the loader; just-in-time compilers",
    SYS_mremap: "realloc of large arrays",
    SYS_madvise: "allocators give memory back",
    SYS_msync: "writes of mapped files: numpy.memmap",
    SYS_mincore: "asks what is resident",
    SYS_mlock: "small locks for keys; a limit bounds it",
    SYS_mlock2: "the same",
    SYS_munlock: "the same",
    SYS_brk: "the heap",
    SYS_memfd_create: "anonymous files; counted as memory",
    SYS_membarrier: "runtimes of other languages",
    // Processes and threads.
    SYS_execve: "starts programs",
    SYS_exit: "ends a thread",
    SYS_exit_group: "ends a program",
    SYS_wait4: "waits for a child",
    SYS_waitid: "the same",
    SYS_kill: "signals; Landlock keeps them to the own calls",
    SYS_tkill: "signals a thread",
    SYS_tgkill: "the same: abort, pthread_kill",
    SYS_rt_sigqueueinfo: "signals with a value",
    SYS_rt_tgsigqueueinfo: "the same to a thread",
    SYS_pidfd_open: "asyncio waits for children with it",
    SYS_pidfd_send_signal: "the same",
    SYS_getpid: "who am I",
    SYS_getppid: "who started me",
    SYS_gettid: "which thread am I",
    SYS_getuid: "ids",
    SYS_geteuid: "ids",
    SYS_getgid: "ids",
    SYS_getegid: "ids",
    SYS_getresuid: "ids",
    SYS_getresgid: "ids",
    SYS_getgroups: "ids",
    SYS_capget: "looks at its own capabilities, all empty",
    SYS_setpgid: "job control of shells",
    SYS_getpgid: "the same",
    SYS_setsid: "start_new_session",
    SYS_getsid: "the same",
    SYS_set_tid_address: "start of every thread library",
    SYS_set_robust_list: "the same",
    SYS_get_robust_list: "the same",
    SYS_rseq: "the same",
    SYS_futex: "every lock",
    SYS_futex_waitv: "waits for several",
    SYS_sched_yield: "spinning locks: OpenBLAS",
    SYS_sched_getaffinity: "os.cpu_count, OpenBLAS, joblib",
    SYS_sched_setaffinity: "joblib, OpenMP; only within the sandbox's processors, and of oneself where the agent has the same id",
    SYS_sched_getscheduler: "asks for its own class",
    SYS_sched_getparam: "the same",
    SYS_sched_get_priority_max: "thread libraries ask",
    SYS_sched_get_priority_min: "the same",
    SYS_sched_rr_get_interval: "the same",
    SYS_getcpu: "allocators",
    SYS_getpriority: "nice",
    SYS_setpriority: "nice; of oneself, only downwards",
    SYS_getrusage: "time, resource",
    SYS_times: "time",
    SYS_getrlimit: "resource",
    SYS_setrlimit: "resource; hard limits are fixed, and that of cores both ways",
    // Signals.
    SYS_rt_sigaction: "handlers",
    SYS_rt_sigprocmask: "masks",
    SYS_rt_sigpending: "the same",
    SYS_rt_sigsuspend: "shells wait for children",
    SYS_rt_sigtimedwait: "signal.sigtimedwait",
    SYS_rt_sigreturn: "end of a handler",
    SYS_sigaltstack: "faulthandler",
    SYS_signalfd4: "signals as a descriptor",
    SYS_restart_syscall: "after a stop",
    // Waiting, time.
    SYS_ppoll: "waits for descriptors",
    SYS_pselect6: "the same",
    SYS_epoll_create1: "asyncio",
    SYS_epoll_ctl: "asyncio",
    SYS_epoll_pwait: "asyncio",
    SYS_epoll_pwait2: "the same, finer",
    SYS_eventfd2: "event loops",
    SYS_timerfd_create: "event loops",
    SYS_timerfd_settime: "event loops",
    SYS_timerfd_gettime: "event loops",
    SYS_pipe2: "pipes",
    SYS_nanosleep: "sleep",
    SYS_clock_nanosleep: "sleep",
    SYS_clock_gettime: "time",
    SYS_clock_getres: "time",
    SYS_gettimeofday: "time",
    SYS_setitimer: "signal.setitimer",
    SYS_getitimer: "the same",
    SYS_timer_create: "POSIX timers",
    SYS_timer_settime: "the same",
    SYS_timer_gettime: "the same",
    SYS_timer_getoverrun: "the same",
    SYS_timer_delete: "the same",
    // Sockets between processes of the sandbox; the family is looked at in a filter of its own.
    SYS_socket: "multiprocessing, asyncio",
    SYS_socketpair: "the same",
    SYS_bind: "the same",
    SYS_listen: "the same",
    SYS_accept: "the same",
    SYS_accept4: "the same",
    SYS_connect: "the same",
    SYS_getsockname: "the same",
    SYS_getpeername: "the same",
    SYS_sendto: "the same",
    SYS_recvfrom: "the same",
    SYS_sendmsg: "the same; passes descriptors within the sandbox",
    SYS_recvmsg: "the same",
    SYS_sendmmsg: "the same",
    SYS_recvmmsg: "the same",
    SYS_getsockopt: "the same",
    SYS_shutdown: "the same",
    // The system.
    SYS_uname: "platform; the name is invented",
    SYS_sysinfo: "memory and load: R, LibreOffice",
    SYS_getrandom: "every random number",
};

/// Older forms that this processor still has and that programs still use.
#[cfg(target_arch = "x86_64")]
pub(crate) const WORKLOAD_OLDER: &[Allowed] = allow! {
    SYS_open: "older openat",
    SYS_creat: "older openat",
    SYS_stat: "older newfstatat",
    SYS_lstat: "older newfstatat",
    SYS_access: "older faccessat: the loader",
    SYS_readlink: "older readlinkat",
    SYS_link: "older linkat",
    SYS_symlink: "older symlinkat",
    SYS_unlink: "older unlinkat",
    SYS_rename: "older renameat",
    SYS_mkdir: "older mkdirat",
    SYS_rmdir: "older unlinkat",
    SYS_mknod: "older mknodat",
    SYS_chmod: "older fchmodat",
    SYS_chown: "older fchownat",
    SYS_lchown: "older fchownat",
    SYS_utime: "older utimensat",
    SYS_utimes: "older utimensat",
    SYS_futimesat: "older utimensat",
    SYS_getdents: "older getdents64",
    SYS_dup2: "older dup3",
    SYS_pipe: "older pipe2",
    SYS_poll: "older ppoll",
    SYS_select: "older pselect6",
    SYS_epoll_create: "older epoll_create1",
    SYS_epoll_wait: "older epoll_pwait",
    SYS_eventfd: "older eventfd2",
    SYS_signalfd: "older signalfd4",
    SYS_inotify_init: "older inotify_init1",
    SYS_fork: "older clone",
    SYS_vfork: "subprocess starts children with it",
    SYS_getpgrp: "older getpgid: bash",
    SYS_alarm: "older setitimer",
    SYS_pause: "older sigsuspend",
    SYS_time: "older clock_gettime",
    SYS_arch_prctl: "thread-local storage",
};

/// This processor never had older forms.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const WORKLOAD_OLDER: &[Allowed] = &[];

/// What the agent and the exec helper need on top: taking the workload's ids and giving up
/// rights. None of it can gain any.
pub(crate) const AGENT: &[Allowed] = allow! {
    SYS_setresuid: "the exec helper becomes the workload",
    SYS_setresgid: "the same",
    SYS_setfsuid: "file work with the workload's rights",
    SYS_setfsgid: "the same",
    SYS_capset: "the exec helper gives up every capability",
    SYS_prctl: "the same; non-dumpable, no new privileges",
    SYS_prlimit64: "limits of workloads",
    SYS_seccomp: "the exec helper's filters",
    SYS_landlock_create_ruleset: "the exec helper's rules",
    SYS_landlock_add_rule: "the same",
    SYS_landlock_restrict_self: "the same",
    SYS_setsockopt: "options of the agent's own sockets",
    SYS_pidfd_getfd: "takes over its own inherited descriptors, by number; others' need a capability it lacks",
};

/// What `prctl` may be asked for by a workload: nothing that needs or changes a right.
pub(crate) const PRCTL: &[(libc::c_int, &str)] = &[
    (libc::PR_SET_PDEATHSIG, "die with the parent"),
    (libc::PR_GET_PDEATHSIG, "the same"),
    (libc::PR_GET_DUMPABLE, "asks"),
    (libc::PR_SET_DUMPABLE, "closes itself to its siblings"),
    (libc::PR_SET_NAME, "names of threads"),
    (libc::PR_GET_NAME, "names of threads"),
    (libc::PR_GET_SECCOMP, "asks"),
    (libc::PR_CAPBSET_READ, "asks: libcap"),
    (libc::PR_GET_SECUREBITS, "asks"),
    (libc::PR_GET_KEEPCAPS, "asks"),
    (libc::PR_SET_TIMERSLACK, "precision of timers"),
    (libc::PR_GET_TIMERSLACK, "the same"),
    (libc::PR_SET_CHILD_SUBREAPER, "supervisors of process trees"),
    (libc::PR_GET_CHILD_SUBREAPER, "the same"),
    (libc::PR_SET_NO_NEW_PRIVS, "is set already"),
    (libc::PR_GET_NO_NEW_PRIVS, "asks"),
    (libc::PR_SET_THP_DISABLE, "allocators"),
    (libc::PR_GET_THP_DISABLE, "allocators"),
    (libc::PR_SET_VMA, "names of memory: allocators"),
];

/// `ioctl` requests that no process in a box may make: both put words into another's mouth.
pub(crate) const IOCTL_REFUSED: &[(u64, &str)] = &[
    (TIOCSTI, "types at a terminal"),
    (TIOCLINUX, "pastes at a console"),
];

/// `ioctl` requests of network devices. An ordinary socket passes them on too, and some make the
/// kernel load a module without asking for any right.
pub(crate) const IOCTL_NETWORK: std::ops::RangeInclusive<u64> = 0x8900..=0x89ff;

/// Flags without which a call is allowed: the call, the argument and the flag.
pub(crate) const FLAGS_REFUSED: &[(i64, u8, u64, &str)] = &[
    (
        libc::SYS_mmap,
        3,
        libc::MAP_HUGETLB as u64,
        "huge pages: no limit counts them",
    ),
    (
        libc::SYS_memfd_create,
        1,
        libc::MFD_HUGETLB as u64,
        "huge pages: no limit counts them",
    ),
    (
        libc::SYS_sendto,
        3,
        libc::MSG_OOB as u64,
        "urgent data: kernel code that nobody needs",
    ),
    (libc::SYS_recvfrom, 3, libc::MSG_OOB as u64, "the same"),
    (libc::SYS_sendmsg, 2, libc::MSG_OOB as u64, "the same"),
    (libc::SYS_recvmsg, 2, libc::MSG_OOB as u64, "the same"),
    (libc::SYS_sendmmsg, 3, libc::MSG_OOB as u64, "the same"),
    (libc::SYS_recvmmsg, 3, libc::MSG_OOB as u64, "the same"),
];

const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;

/// Socket options that no workload may set: each loads a program into the kernel.
pub(crate) const SOCKET_OPTIONS_REFUSED: &[(libc::c_int, &str)] = &[
    (libc::SO_ATTACH_FILTER, "a filter program"),
    (libc::SO_ATTACH_BPF, "a filter program"),
    (libc::SO_ATTACH_REUSEPORT_CBPF, "a filter program"),
    (libc::SO_ATTACH_REUSEPORT_EBPF, "a filter program"),
];

/// Calls that give a file an attribute: file systems in memory do not support that here.
///
/// An access control list is an attribute, and the kernel keeps it in memory of its own that no
/// control group counts: 64 KiB for each file or folder. The name lies behind a pointer, so no
/// filter can let the harmless ones pass. What copies attributes goes on without when it hears
/// this.
pub(crate) const SET_ATTRIBUTE: &[libc::c_long] =
    &[libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr];

/// Commands of `fcntl` that lock bytes of a file: answered with success, and nothing is locked.
///
/// The kernel keeps one record for every range of bytes, without number and in memory that no
/// control group counts. What it means for programs stands in decision 8 in `docs/adr`.
pub(crate) const LOCK_RECORD: &[libc::c_int] = &[
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
];

/// The flags of `clone` that make a namespace.
pub(crate) const CLONE_NEW: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

/// What `personality` answers without changing anything.
pub(crate) const PERSONALITY_QUERY: u64 = 0xffff_ffff;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_call_stands_in_one_table_only_and_has_a_reason() {
        let mut seen = BTreeSet::new();
        for allowed in WORKLOAD.iter().chain(WORKLOAD_OLDER).chain(AGENT) {
            assert!(seen.insert(allowed.number), "{} stands twice", allowed.name);
            assert!(!allowed.why.is_empty(), "{} has no reason", allowed.name);
        }
    }

    #[test]
    fn what_must_be_refused_stands_in_no_table() {
        let all: BTreeSet<_> = WORKLOAD
            .iter()
            .chain(WORKLOAD_OLDER)
            .chain(AGENT)
            .map(|allowed| allowed.number)
            .collect();
        for (number, name) in [
            (libc::SYS_unshare, "unshare"),
            (libc::SYS_setns, "setns"),
            (libc::SYS_clone3, "clone3"),
            (libc::SYS_mount, "mount"),
            (libc::SYS_umount2, "umount2"),
            (libc::SYS_pivot_root, "pivot_root"),
            (libc::SYS_chroot, "chroot"),
            (libc::SYS_fsopen, "fsopen"),
            (libc::SYS_open_tree, "open_tree"),
            (libc::SYS_move_mount, "move_mount"),
            (libc::SYS_mount_setattr, "mount_setattr"),
            (libc::SYS_ptrace, "ptrace"),
            (libc::SYS_process_vm_readv, "process_vm_readv"),
            (libc::SYS_process_vm_writev, "process_vm_writev"),
            (libc::SYS_kcmp, "kcmp"),
            (libc::SYS_bpf, "bpf"),
            (libc::SYS_perf_event_open, "perf_event_open"),
            (libc::SYS_userfaultfd, "userfaultfd"),
            (libc::SYS_io_uring_setup, "io_uring_setup"),
            (libc::SYS_keyctl, "keyctl"),
            (libc::SYS_add_key, "add_key"),
            (libc::SYS_splice, "splice"),
            (libc::SYS_vmsplice, "vmsplice"),
            (libc::SYS_tee, "tee"),
            (libc::SYS_open_by_handle_at, "open_by_handle_at"),
            (libc::SYS_name_to_handle_at, "name_to_handle_at"),
            (libc::SYS_setgroups, "setgroups"),
            (libc::SYS_shmget, "shmget"),
            (libc::SYS_mq_open, "mq_open"),
        ] {
            assert!(!all.contains(&number), "{name} is allowed");
        }
        let workload = WORKLOAD.iter().chain(WORKLOAD_OLDER);
        assert!(
            workload
                .into_iter()
                .all(|allowed| allowed.number != libc::SYS_pidfd_getfd),
            "a workload may take descriptors of others"
        );
    }
}
