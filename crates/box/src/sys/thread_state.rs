//! What the C library and the kernel have agreed on about a thread, and what a copy of the thread
//! has to agree on anew because it was not made by the C library's own `fork`.

use std::arch::asm;
use std::ffi::CStr;
use std::io;

use super::checked;

/// What the kernel keeps about this thread.
#[derive(Debug)]
pub(crate) struct ThreadState {
    /// Where the C library has the thread's id.
    tid: u64,
    /// Its list of locks that are let go when the thread ends.
    robust_list: (usize, usize),
    /// Its area for restartable sequences, where it uses them.
    rseq: Option<usize>,
}

/// The least that the kernel takes as such an area; the C library's is never smaller.
const RSEQ_BYTES: libc::c_long = 32;

/// What must stand in front of the code at which a sequence is aborted; the C library's choice.
#[cfg(target_arch = "x86_64")]
const RSEQ_SIGNATURE: libc::c_long = 0x5305_3053;
#[cfg(target_arch = "aarch64")]
const RSEQ_SIGNATURE: libc::c_long = 0xd428_bc00;

impl ThreadState {
    /// Looks at this thread.
    ///
    /// # Errors
    /// When the kernel does not say: it can be built without that.
    pub(crate) fn of_this_thread() -> io::Result<Self> {
        let mut tid = 0_u64;
        // SAFETY: writes one address, for which there is room.
        checked(unsafe { libc::prctl(libc::PR_GET_TID_ADDRESS, &raw mut tid) }.into())?;
        if tid == 0 {
            return Err(io::Error::other(
                "the C library has no record of the thread",
            ));
        }
        let mut robust_list = (0_usize, 0_usize);
        // SAFETY: writes an address and a length, for which there is room; 0 is this thread.
        checked(unsafe {
            libc::syscall(
                libc::SYS_get_robust_list,
                0,
                &raw mut robust_list.0,
                &raw mut robust_list.1,
            )
        })?;
        Ok(Self {
            tid,
            robust_list,
            rseq: rseq_area(),
        })
    }

    /// Where the kernel has to write a copy's id, and what it clears at its end.
    pub(super) const fn tid_address(&self) -> u64 {
        self.tid
    }

    /// Agrees on it anew, in a copy.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn restore(&self) -> io::Result<()> {
        let (head, length) = self.robust_list;
        if head != 0 {
            // SAFETY: the address and length are those that the C library gave for this thread,
            // whose memory the copy has.
            checked(unsafe { libc::syscall(libc::SYS_set_robust_list, head, length) })?;
        }
        if let Some(area) = self.rseq {
            // SAFETY: the area is the C library's for this thread, which the original thread goes
            // on using in memory of its own, and at least as large as is said.
            checked(unsafe { libc::syscall(libc::SYS_rseq, area, RSEQ_BYTES, 0, RSEQ_SIGNATURE) })?;
        }
        Ok(())
    }
}

/// The address of this thread's area, where the C library has one and uses it.
fn rseq_area() -> Option<usize> {
    let size = symbol::<libc::c_uint>(c"__rseq_size")?;
    let offset = symbol::<libc::ptrdiff_t>(c"__rseq_offset")?;
    (size != 0).then(|| thread_pointer().wrapping_add_signed(offset))
}

/// The value of a constant of the C library, if this one has it.
fn symbol<T: Copy>(name: &CStr) -> Option<T> {
    // SAFETY: the name ends with a zero byte.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: where it is not null it is the address of a constant, which has this type in every
    // C library that has it.
    (!address.is_null()).then(|| unsafe { *address.cast::<T>() })
}

fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: reads the word in which the thread's own address stands.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}
