//! The walls around a workload, each tried from inside with something that must work beside what
//! must not: system calls, socket families, files, signals, descriptors.

#![cfg(test)]

mod support;

use glovebox_box::control::BoxFacts;
use support::launcher::{Launcher, Ran, run, spec};
use support::tree;

/// What every probe begins with: a raw system call that says what came of it.
const PRELUDE: &str = "
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[
        a if isinstance(a, bytes) or a is None else ctypes.c_ulong(a & (2**64 - 1)) for a in arguments])
    return 'ok' if result >= 0 else errno.errorcode[ctypes.get_errno()]
";

fn probe(facts: &BoxFacts, code: &str) -> Ran {
    run(facts, &["python3", "-c", &format!("{PRELUDE}{code}")])
}

fn in_box(check: impl FnOnce(&BoxFacts)) {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec()).unwrap();
    check(&facts);
    assert!(launcher.close().success());
}

/// Numbers of this processor, because a probe calls by number.
fn numbers(names: &[(&str, libc::c_long)]) -> String {
    let pairs: Vec<_> = names
        .iter()
        .map(|(name, number)| format!("({name:?}, {number})"))
        .collect();
    format!("[{}]", pairs.join(", "))
}

#[test]
fn calls_that_no_workload_has_do_not_exist() {
    let refused = numbers(&[
        ("unshare", libc::SYS_unshare),
        ("setns", libc::SYS_setns),
        ("clone3", libc::SYS_clone3),
        ("mount", libc::SYS_mount),
        ("umount2", libc::SYS_umount2),
        ("pivot_root", libc::SYS_pivot_root),
        ("chroot", libc::SYS_chroot),
        ("fsopen", libc::SYS_fsopen),
        ("fsmount", libc::SYS_fsmount),
        ("open_tree", libc::SYS_open_tree),
        ("move_mount", libc::SYS_move_mount),
        ("mount_setattr", libc::SYS_mount_setattr),
        ("ptrace", libc::SYS_ptrace),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("process_vm_writev", libc::SYS_process_vm_writev),
        ("pidfd_getfd", libc::SYS_pidfd_getfd),
        ("kcmp", libc::SYS_kcmp),
        ("process_madvise", libc::SYS_process_madvise),
        ("bpf", libc::SYS_bpf),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("io_uring_enter", libc::SYS_io_uring_enter),
        ("keyctl", libc::SYS_keyctl),
        ("add_key", libc::SYS_add_key),
        ("request_key", libc::SYS_request_key),
        ("kexec_load", libc::SYS_kexec_load),
        ("init_module", libc::SYS_init_module),
        ("finit_module", libc::SYS_finit_module),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("name_to_handle_at", libc::SYS_name_to_handle_at),
        ("quotactl", libc::SYS_quotactl),
        ("acct", libc::SYS_acct),
        ("swapon", libc::SYS_swapon),
        ("reboot", libc::SYS_reboot),
        ("settimeofday", libc::SYS_settimeofday),
        ("clock_settime", libc::SYS_clock_settime),
        ("fanotify_init", libc::SYS_fanotify_init),
        ("splice", libc::SYS_splice),
        ("vmsplice", libc::SYS_vmsplice),
        ("tee", libc::SYS_tee),
        ("syslog", libc::SYS_syslog),
        ("setresuid", libc::SYS_setresuid),
        ("capset", libc::SYS_capset),
        ("seccomp", libc::SYS_seccomp),
        ("shmget", libc::SYS_shmget),
        ("msgget", libc::SYS_msgget),
        ("mq_open", libc::SYS_mq_open),
        ("memfd_secret", 447),
        ("unknown", 4000),
    ]);
    in_box(|facts| {
        let ran = probe(
            facts,
            &format!(
                "print([name for name, number in {refused} if call(number, 0, 0, 0, 0, 0, 0) != 'ENOSYS'])\nprint(call({}))",
                libc::SYS_getpid
            ),
        );
        assert_eq!(ran.stdout, "[]\nok\n", "{ran:?}");
    });
}

#[test]
fn arguments_decide_where_a_call_is_both_needed_and_dangerous() {
    let code = format!(
        "
SIGCHLD, NEWUSER = 17, 0x10000000
def clone(flags):
    result = call({clone}, flags, 0, 0, 0, 0)
    if result == 'ok' and os.getpid() != me: os._exit(0)
    return result
me = os.getpid()
print(clone(SIGCHLD))
print([hex(1 << bit) for bit in (17, 25, 26, 27, 28, 29, 30) if clone(SIGCHLD | 1 << bit) != 'ENOSYS'])
print(call({personality}, 0xffffffff), call({personality}, 0x0040000), call({personality}, 0))
r, w = os.pipe()
import ctypes
buffer = b'x' * 8
print(call({ioctl}, r, 0x541b, buffer), call({ioctl}, r, 0x5412, buffer), call({ioctl}, r, 0x541c, buffer))
print(call({ioctl}, r, 0xffffffff00005412, buffer))
print(call({prctl}, 15, b'name', 0, 0, 0), call({prctl}, 22, 2, 0, 0, 0), call({prctl}, 28, 0, 0, 0, 0), call({prctl}, 35, 0, 0, 0, 0))
print(call({prlimit}, 0, 7, None, None), call({prlimit}, 1, 7, None, None))
import socket
one, two = socket.socketpair()
one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
try:
    one.setsockopt(socket.SOL_SOCKET, 26, bytes(16)); print('filter attached')
except OSError as error: print(errno.errorcode[error.errno])
one.setblocking(False)
print(call({ioctl}, one.fileno(), 0x8940, buffer), call({ioctl}, one.fileno(), 0x8983, buffer), call({ioctl}, one.fileno(), 0x8910, buffer))
print(call({sendto}, one.fileno(), b'x', 1, 0, None, 0), call({sendto}, one.fileno(), b'x', 1, 1, None, 0), call({recvfrom}, two.fileno(), bytes(1), 1, 1, None, None))
print(call({memfd}, b'a', 0), call({memfd}, b'a', 4))
print(call({mmap}, None, 4096, 3, 0x22, -1, 0), call({mmap}, None, 2 << 20, 3, 0x40022, -1, 0))
",
        sendto = libc::SYS_sendto,
        recvfrom = libc::SYS_recvfrom,
        memfd = libc::SYS_memfd_create,
        mmap = libc::SYS_mmap,
        clone = libc::SYS_clone,
        personality = libc::SYS_personality,
        ioctl = libc::SYS_ioctl,
        prctl = libc::SYS_prctl,
        prlimit = libc::SYS_prlimit64,
    );
    in_box(|facts| {
        let ran = probe(facts, &code);
        assert_eq!(
            ran.stdout,
            "ok\n[]\nok ENOSYS ENOSYS\nok ENOSYS ENOSYS\nENOSYS\nok ENOSYS ENOSYS ENOSYS\nok ENOSYS\nENOSYS\n\
             ENOSYS ENOSYS ENOSYS\nok ENOSYS ENOSYS\nok ENOSYS\nok ENOSYS\n",
            "{ran:?}"
        );
    });
}

#[test]
fn no_file_gets_an_attribute_and_what_copies_them_goes_on_silently() {
    let code = format!(
        "
import shutil, subprocess, tarfile
# One entry each for owner, group and others, behind the version.
acl = bytes([2, 0, 0, 0]) + b''.join(bytes([tag, 0, 7, 0, 255, 255, 255, 255]) for tag in (1, 4, 32))
results = set()
for folder in (b'/workspace', b'/tmp', b'/dev/shm'):
    file = folder + b'/f'
    fd = os.open(file, os.O_CREAT | os.O_RDWR)
    for name in (b'system.posix_acl_access', b'system.posix_acl_default', b'user.x'):
        for target in (file, folder):
            results.add(call({setxattr}, target, name, acl, len(acl), 0))
            results.add(call({lsetxattr}, target, name, acl, len(acl), 0))
        results.add(call({fsetxattr}, fd, name, acl, len(acl), 0))
print(results, call(463, -100, b'/workspace/f', 0, b'user.x', acl, 16))
print(os.listxattr('/workspace/f'))
shutil.copystat('/usr/bin/true', '/workspace/f'); shutil.copy2('/usr/bin/true', '/workspace/true')
print(subprocess.run(['cp', '-a', '/usr/bin/true', '/workspace/f', '/tmp/'], capture_output=True))
print(subprocess.run(['cp', '--preserve=all', '-r', '/workspace', '/tmp/all'], capture_output=True))
print(subprocess.run(['mv', '/tmp/f', '/dev/shm/g'], capture_output=True))
",
        setxattr = libc::SYS_setxattr,
        lsetxattr = libc::SYS_lsetxattr,
        fsetxattr = libc::SYS_fsetxattr,
    );
    in_box(|facts| {
        let ran = probe(facts, &code);
        let silent = |argv: &str| {
            format!("CompletedProcess(args=[{argv}], returncode=0, stdout=b'', stderr=b'')")
        };
        assert_eq!(
            ran.stdout,
            format!(
                "{{'ENOTSUP'}} ENOSYS\n[]\n{}\n{}\n{}\n",
                silent("'cp', '-a', '/usr/bin/true', '/workspace/f', '/tmp/'"),
                silent("'cp', '--preserve=all', '-r', '/workspace', '/tmp/all'"),
                silent("'mv', '/tmp/f', '/dev/shm/g'"),
            ),
            "{ran:?}"
        );
    });
}

/// The kernel keeps one record for every range of bytes that is locked, which no limit counts.
#[test]
fn locks_of_records_succeed_and_take_nothing_of_the_kernel() {
    in_box(|facts| {
        let ran = probe(
            facts,
            "
import dbm.dumb, fcntl, shelve, sqlite3, struct, sys
file = open('/workspace/f', 'wb+')
def lock(command, kind, start):
    return fcntl.fcntl(file, command, struct.pack('hhqqi4x', kind, 0, start, 1, 0)) and 'ok'
print({lock(command, fcntl.F_WRLCK, byte) for byte in range(0, 2000, 2)
       for command in (fcntl.F_SETLK, fcntl.F_SETLKW, fcntl.F_OFD_SETLK, fcntl.F_OFD_SETLKW)})
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB); sys.stdout.flush()
child = os.fork()
if child == 0:
    # Another process would be told of a lock, if there were one.
    seen = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))
    print(struct.unpack('hhqqi4x', seen)[0] == fcntl.F_UNLCK, flush=True)
    os._exit(0)
os.wait()
# Locks of whole files are one for each open file, and real.
other = open('/workspace/f')
fcntl.flock(file, fcntl.LOCK_EX)
try: fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB); print('twice')
except BlockingIOError: print('held')
print(fcntl.fcntl(file, fcntl.F_GETFL) & os.O_RDWR != 0, fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 100) >= 100)
for mode in ('delete', 'wal', 'exclusive'):
    one, two = (sqlite3.connect(f'/workspace/{mode}.db', isolation_level=None) for _ in range(2))
    if mode != 'exclusive': one.execute(f'pragma journal_mode={mode}')
    one.execute('create table t(a)')
    one.execute('begin immediate'); one.execute('insert into t values(1)')
    # Within one process SQLite keeps its own account of who has locked what.
    two.execute('pragma busy_timeout=0')
    try: two.execute('begin immediate'); print('both')
    except sqlite3.OperationalError as error: print(error)
    one.execute('commit')
    print(two.execute('select * from t').fetchall(), two.execute('pragma integrity_check').fetchall())
# Where two processes write, locks by a file beside the database are real.
beside = 'file:/workspace/beside.db?vfs=unix-dotfile'
one = sqlite3.connect(beside, uri=True, isolation_level=None); one.execute('create table t(a)'); one.execute('begin immediate')
sys.stdout.flush()
if os.fork() == 0:
    try: sqlite3.connect(beside, uri=True, timeout=0).execute('begin immediate'); print('both', flush=True)
    except sqlite3.OperationalError as error: print(error, flush=True)
    os._exit(0)
os.wait()
with shelve.open('/workspace/shelf') as shelf: shelf['key'] = [1, 2]
with shelve.open('/workspace/shelf') as shelf: print(shelf['key'])
",
        );
        assert_eq!(
            ran.stdout,
            "{'ok'}\nTrue\nheld\nTrue True\n\
             database is locked\n[(1,)] [('ok',)]\n\
             database is locked\n[(1,)] [('ok',)]\n\
             database is locked\n[(1,)] [('ok',)]\n\
             database is locked\n[1, 2]\n",
            "{ran:?}"
        );
    });
}

#[test]
fn a_priority_is_ones_own_and_the_limit_of_cores_is_nobodys() {
    in_box(|facts| {
        let ran = probe(
            facts,
            &format!(
                "
import resource as r
print(call({setpriority}, 0, 0, 1), os.nice(1))
# The agent by its number, one's group, and everybody with one's id.
print([call({setpriority}, *of, 19) for of in ((0, 1), (0, os.getpid()), (1, 0), (2, 0), (0, 2**32 + 1))])
print(os.sched_setaffinity(0, os.sched_getaffinity(0)))
low = (0).to_bytes(16, 'little')
print(call({setrlimit}, 4, low), call({prlimit}, 0, 4, low, None), call({prlimit}, os.getpid(), 4, low, None))
print(call({setrlimit}, 2**32 + 4, low), r.getrlimit(r.RLIMIT_CORE), r.prlimit(0, r.RLIMIT_CORE))
",
                setpriority = libc::SYS_setpriority,
                setrlimit = libc::SYS_setrlimit,
                prlimit = libc::SYS_prlimit64,
            ),
        );
        assert_eq!(
            ran.stdout,
            "ok 2\n['ENOSYS', 'ENOSYS', 'ENOSYS', 'ENOSYS', 'ENOSYS']\nNone\n\
             EPERM EPERM ENOSYS\nEPERM (1, 1) (1, 1)\n",
            "{ran:?}"
        );
    });
}

#[test]
fn only_local_sockets_can_be_made() {
    in_box(|facts| {
        let ran = probe(
            facts,
            &format!(
                "
kinds = (1, 2, 3, 5)
def families(number):
    pair = b'x' * 8
    return [(family, kind) for family in range(46) for kind in kinds
            if call(number, family, kind, 0, pair) != 'EAFNOSUPPORT']
print(families({socket}))
print(families({socketpair}))
print(call({socket}, 2**32 + 2, 1, 0))
import socket, sys
left, right = socket.socketpair(); left.send(b'x'); print(right.recv(1))
",
                socket = libc::SYS_socket,
                socketpair = libc::SYS_socketpair,
            ),
        );
        // Of the local family every type that the kernel has is allowed.
        let local = "[(1, 1), (1, 2), (1, 3), (1, 5)]";
        assert_eq!(
            ran.stdout,
            format!("{local}\n{local}\nEAFNOSUPPORT\nb'x'\n"),
            "{ran:?}"
        );
    });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_by_another_processors_numbers_kill_or_do_not_exist() {
    in_box(|facts| {
        // `int 0x80`, getpid of the 32-bit interface.
        let ran = probe(
            facts,
            "
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
print('about to', flush=True)
ctypes.CFUNCTYPE(ctypes.c_int)(address)()
print('survived')",
        );
        assert_eq!(ran.stdout, "about to\n", "{ran:?}");
        assert_eq!(ran.signal, Some(31), "{ran:?}");
        // The interface with bit 30: getpid.
        let ran = probe(facts, "print(call(0x40000000 + 39), call(39))");
        assert_eq!(ran.stdout, "ENOSYS ok\n", "{ran:?}");
    });
}

#[test]
fn nothing_but_the_three_own_folders_can_be_written() {
    in_box(|facts| {
        let ran = run(
            facts,
            &[
                "python3",
                "-c",
                "
import errno, os
def attempt(work):
    try: work(); return 'ok'
    except OSError as error: return errno.errorcode[error.errno]
for folder in ('/workspace', '/tmp', '/dev/shm'):
    print(folder, attempt(lambda: open(folder + '/f', 'w')), attempt(lambda: os.rename(folder + '/f', folder + '/g')))
for path in ('/f', '/etc/f', '/usr/f', '/dev/f', '/proc/f', '/opt/f', '/bin/sh', '/home/f', '/proc/self/oom_score_adj'):
    result = attempt(lambda: open(path, 'w'))
    if result not in ('EROFS', 'EACCES', 'ENOENT'): print(path, result)
for work in (lambda: os.chmod('/etc', 0o777), lambda: os.utime('/etc'), lambda: os.setxattr('/etc', 'user.x', b'x'), lambda: os.unlink('/bin/sh')):
    if attempt(work) not in ('EROFS', 'EACCES', 'EPERM', 'ENOTSUP'): print('changed', attempt(work))
print(open('/dev/null', 'w').write('x'), len(open('/dev/urandom', 'rb').read(8)), attempt(lambda: os.listdir('/')))
",
            ],
        );
        assert_eq!(
            ran.stdout, "/workspace ok ok\n/tmp ok ok\n/dev/shm ok ok\n1 8 ok\n",
            "{ran:?}"
        );
    });
}

#[test]
fn programs_run_from_the_workspace_and_from_tmp_and_not_from_shared_memory() {
    in_box(|facts| {
        let ran = run(
            facts,
            &[
                "sh",
                "-c",
                "for d in /workspace /tmp /dev/shm; do cp=$d/p; cat /usr/bin/true > $cp; chmod 4755 $cp; $cp; echo $d $?; done 2>/dev/null",
            ],
        );
        assert_eq!(
            ran.stdout, "/workspace 0\n/tmp 0\n/dev/shm 126\n",
            "{ran:?}"
        );
    });
}

#[test]
fn the_agent_and_other_calls_are_out_of_reach() {
    in_box(|facts| {
        let ran = run(
            facts,
            &[
                "python3",
                "-c",
                "
import errno, os, signal
def attempt(work):
    try: work(); return 'ok'
    except OSError as error: return errno.errorcode[error.errno]
child = os.fork()
if child == 0: signal.pause()
print(attempt(lambda: os.kill(child, signal.SIGTERM))); os.wait()
print(attempt(lambda: os.kill(1, signal.SIGKILL)), attempt(lambda: os.kill(1, 0)))
print([name for name in ('environ', 'mem', 'maps', 'fd', 'cmdline') if attempt(lambda: os.stat('/proc/1/' + name)) == 'ok'])
print(sorted(name for name in os.listdir('/proc') if not name.isdigit()))
",
            ],
        );
        assert_eq!(
            ran.stdout, "ok\nEPERM EPERM\n[]\n['self', 'thread-self']\n",
            "{ran:?}"
        );
    });
}

#[test]
fn what_people_run_works_under_all_of_it() {
    in_box(|facts| {
        let ran = run(
            facts,
            &[
                "python3",
                "-c",
                "
import asyncio, concurrent.futures as f, multiprocessing as m, os, shutil, sqlite3, subprocess, tempfile, threading
from multiprocessing import shared_memory
if __name__ == '__main__':
    with m.Pool(2) as pool: print(pool.map(abs, [-1, -2]))
    with m.get_context('spawn').Pool(1) as pool: print(pool.map(abs, [-3]))
    with f.ThreadPoolExecutor(4) as pool: print(list(pool.map(abs, [-4])))
    block = shared_memory.SharedMemory(create=True, size=4096); block.close(); block.unlink()
    print(subprocess.run('echo one | cat', shell=True, capture_output=True, text=True, start_new_session=True).stdout)
    db = sqlite3.connect('/workspace/db'); db.execute('create table t(a)'); db.commit(); db.execute('pragma journal_mode=wal'); db.execute('insert into t values(5)'); db.commit()
    print(db.execute('select a from t').fetchall())
    async def main():
        process = await asyncio.create_subprocess_exec('sh', '-c', 'echo two', stdout=asyncio.subprocess.PIPE)
        return (await process.communicate())[0]
    print(asyncio.run(main()))
    with tempfile.NamedTemporaryFile() as file: file.write(b'x' * 100000); file.flush(); shutil.copy(file.name, '/workspace/copy')
    print(os.stat('/workspace/copy').st_size, os.cpu_count() > 0)
    os.mkfifo('/workspace/fifo'); os.symlink('copy', '/workspace/link'); shutil.rmtree('/workspace', ignore_errors=True)
",
            ],
        );
        assert_eq!(
            ran.stdout, "[1, 2]\n[3]\n[4]\none\n\n[(5,)]\nb'two\\n'\n100000 True\n",
            "{ran:?}"
        );
    });
}
