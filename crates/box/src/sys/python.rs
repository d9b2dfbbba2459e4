//! What a template's Python calls, and what is called in it.
//!
//! All of it runs in the one thread of that Python, which holds its lock: the library is loaded
//! with `ctypes.PyDLL`, which does not give it away.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use crate::template::serve::{Interpreter, KernelStart, failed, serve};

unsafe extern "C" {
    fn PyOS_BeforeFork();
    fn PyOS_AfterFork_Parent();
    fn PyOS_AfterFork_Child();
}

/// Runs a kernel: the descriptor of its wire, the threads that libraries may start, whether
/// generators of random numbers begin anew, and whether nobody waits for it yet. Does not come
/// back.
type Kernel = extern "C" fn(libc::c_int, libc::c_int, libc::c_int, libc::c_int) -> libc::c_int;

/// Takes orders of the launcher from the socket `line` until that is closed, and runs `child` in
/// each copy. Gives 0 then, and 1 when the template cannot go on; the launcher has been told why.
#[unsafe(no_mangle)]
pub(super) extern "C" fn glovebox_template_serve(
    line: libc::c_int,
    child: Option<Kernel>,
) -> libc::c_int {
    let Some(kernel) = child.filter(|_| line >= 0) else {
        return 1;
    };
    // SAFETY: Python keeps the line open for as long as it is in here.
    let line = unsafe { BorrowedFd::borrow_raw(line) };
    let served = serve(line, &ThisPython { kernel });
    libc::c_int::from(served.is_err())
}

/// Tells the launcher that this template cannot go on, and why.
///
/// # Safety
/// `cause` must be null or end with a zero byte.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn glovebox_template_failed(
    line: libc::c_int,
    cause: *const libc::c_char,
) {
    if line < 0 || cause.is_null() {
        return;
    }
    // SAFETY: Python keeps the line open for as long as it is in here.
    let line = unsafe { BorrowedFd::borrow_raw(line) };
    // SAFETY: the caller says so.
    let cause = unsafe { CStr::from_ptr(cause) };
    failed(line, &cause.to_string_lossy());
}

/// The Python that has loaded this library.
struct ThisPython {
    kernel: Kernel,
}

impl Interpreter for ThisPython {
    fn before_fork(&self) {
        // SAFETY: this thread holds Python's lock, here and below.
        unsafe { PyOS_BeforeFork() }
    }

    fn after_fork_here(&self) {
        // SAFETY: as above; every call of the first is followed by one of these two.
        unsafe { PyOS_AfterFork_Parent() }
    }

    fn after_fork_in_copy(&self) {
        // SAFETY: as above; the copy has this thread alone.
        unsafe { PyOS_AfterFork_Child() }
    }

    fn kernel(&self, start: KernelStart) -> i32 {
        let KernelStart {
            wire,
            threads,
            reseed,
            in_advance,
        } = start;
        (self.kernel)(wire, threads, reseed.into(), in_advance.into())
    }
}
