//! Limits that the runtime says it can enforce.

use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::{Note, Outcome};

use super::Subject;
use super::subject::name;
use crate::Capability;

const MIB: u64 = 1024 * 1024;

pub async fn the_workspace_is_limited_in_bytes(subject: &Subject) {
    if subject.lacks(Capability::WorkspaceBytes) {
        return;
    }
    let mut spec = subject.spec();
    spec.limits.workspace_bytes = 8 * MIB;
    let limits = spec.limits.clone();
    let guest = subject.create_as(spec).await;
    let ran = guest
        .python("f = open('big', 'wb')\nwhile True: f.write(b'x' * 65536); f.flush()")
        .await;
    assert_eq!(ran.ended.outcome, Outcome::Exited { code: 1 });
    let note = Note::DiskFull {
        limit_bytes: limits.workspace_bytes,
        limit_inodes: limits.workspace_inodes,
    };
    assert!(ran.ended.notes.contains(&note), "{:?}", ran.ended);
    let put = guest
        .client
        .put_bytes(&name("more"), vec![0; 65536].into())
        .await;
    assert_eq!(put.unwrap_err().code(), Some(ErrorCode::DiskFull));
    // With room again everything goes on.
    guest.python("import os; os.remove('big')").await;
    guest.put("more", &[0; 65536]).await;
    guest.remove().await;
}

pub async fn the_workspace_is_limited_in_files(subject: &Subject) {
    if subject.lacks(Capability::WorkspaceInodes) {
        return;
    }
    let mut spec = subject.spec();
    spec.limits.workspace_inodes = 100;
    let guest = subject.create_as(spec).await;
    let ran = guest
        .python("for n in range(1000): open(str(n), 'w')")
        .await;
    assert_eq!(ran.ended.outcome, Outcome::Exited { code: 1 });
    assert!(
        ran.ended
            .notes
            .iter()
            .any(|note| matches!(note, Note::DiskFull { .. })),
        "{:?}",
        ran.ended
    );
    let count = guest
        .python("import os; print(len(os.listdir('.')) <= 100)")
        .await;
    assert_eq!(count.text(), "True\n");
    guest.remove().await;
}

pub async fn memory_is_limited_and_running_out_is_named(subject: &Subject) {
    if subject.lacks(Capability::MemoryLimit) {
        return;
    }
    let mut spec = subject.spec();
    spec.limits.memory_bytes = 128 * MIB;
    spec.limits.workspace_bytes = 8 * MIB;
    let limit_bytes = spec.limits.memory_bytes;
    let guest = subject.create_as(spec).await;
    let eat = "x = []\nwhile True: x.append(bytearray(1 << 20))";
    let ran = guest.python(eat).await;
    assert_eq!(ran.ended.outcome, Outcome::OutOfMemory { limit_bytes });
    guest.execute("kept = 1").await;
    let ran = guest.execute(eat).await;
    let cause = Box::new(Outcome::OutOfMemory { limit_bytes });
    assert_eq!(ran.ended.outcome, Outcome::KernelDied { cause });
    assert_eq!(guest.execute("print(1)").await.text(), "1\n");
    guest.remove().await;
}

pub async fn processes_are_limited(subject: &Subject) {
    if subject.lacks(Capability::ProcessLimit) {
        return;
    }
    let mut spec = subject.spec();
    spec.limits.processes = 20;
    let guest = subject.create_as(spec).await;
    let at_rest = guest.processes_at_rest().await;
    let ran = guest
        .python(
            "import os, time\n\
             n = 0\n\
             try:\n\
             \x20   while True:\n\
             \x20       if os.fork() == 0: time.sleep(600); os._exit(0)\n\
             \x20       n += 1\n\
             except BlockingIOError: print(n)",
        )
        .await;
    let made: u32 = ran.text().trim().parse().unwrap();
    assert!((10..20).contains(&made), "{made} processes");
    let note = Note::LeftRunning { processes: made };
    assert!(ran.ended.notes.contains(&note), "{:?}", ran.ended);
    assert_eq!(guest.client.status().await.unwrap().processes, at_rest);
    guest.remove().await;
}

pub async fn processor_time_is_limited(subject: &Subject) {
    if subject.lacks(Capability::CpuLimit) {
        return;
    }
    let mut spec = subject.spec();
    spec.limits.cpu_millis = 200;
    let guest = subject.create_as(spec).await;
    let ran = guest
        .python(
            "import time\n\
             began = time.monotonic()\n\
             while time.monotonic() < began + 2: pass\n\
             print(time.process_time() / (time.monotonic() - began))",
        )
        .await;
    // A share, not a time: a busy machine can only make it smaller.
    let share: f64 = ran.text().trim().parse().unwrap();
    assert!(share < 0.5, "{share} of a processor instead of 0.2");
    guest.remove().await;
}

pub async fn agent_and_workload_have_ids_of_their_own(subject: &Subject) {
    if subject.lacks(Capability::SeparateIds) {
        return;
    }
    let guest = subject.create().await;
    let ran = guest
        .python(
            "import os\n\
             try: os.kill(1, 0); print('may signal the agent')\n\
             except PermissionError: print('may not')\n\
             print(os.path.exists('/proc/1'))",
        )
        .await;
    assert_eq!(ran.text(), "may not\nFalse\n");
    guest.remove().await;
}

pub async fn ending_one_execution_leaves_the_others(subject: &Subject) {
    if subject.lacks(Capability::EndsSingleExecution) {
        return;
    }
    let guest = subject.create().await;
    guest.execute("kept = 5").await;
    let mut start =
        guest.script("import signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True: pass");
    start.time_limit_ms = 300;
    let ran = guest.run(&start).await;
    let expected = Outcome::TimeLimit {
        limit_ms: 300,
        killed: true,
    };
    assert_eq!(ran.ended.outcome, expected);
    assert_eq!(guest.execute("print(kept)").await.text(), "5\n");
    guest.remove().await;
}
