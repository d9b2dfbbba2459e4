//! How kernels come into being: what one has of the one before it, of its neighbours, of the
//! process that it may be a copy of. Nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use glovebox_protocol::event::EventBody;
use glovebox_protocol::kernel::{KernelState, StartKernel};

use super::{Guest, Ran, Subject};
use crate::Capability;

/// Changes everything that a later kernel could inherit by mistake, and leaves a file.
const PAST: &str = "import builtins, os, sys, types
import pandas as pd
marker = 'of the one before'
pd.DataFrame.groupby = lambda *_: 'patched'
sys.modules['left_behind'] = types.ModuleType('left_behind')
sys.path.append('/left/behind')
builtins.left_behind = 1
os.environ['LEFT_BEHIND'] = '1'
open('file.txt', 'w').write('kept')
os.chdir('/tmp')
get_ipython().user_ns['hidden'] = 1
get_ipython().define_macro('left', '1')
import decimal; decimal.getcontext().prec = 3
pd.options.display.max_rows = 7
import matplotlib as mpl; mpl.rcParams['lines.linewidth'] = 99
";

/// What a kernel finds of that, as one line.
const TRACES: &str = "import os, sys, decimal
import pandas as pd, matplotlib as mpl
_found = {
    'variables': [n for n in ('marker', 'hidden', 'left') if n in globals()],
    'patched': pd.DataFrame.groupby.__name__ != 'groupby',
    'module': 'left_behind' in sys.modules,
    'path': '/left/behind' in sys.path,
    'builtin': 'left_behind' in dir(__builtins__),
    'environment': 'LEFT_BEHIND' in os.environ,
    'folder': os.getcwd() == '/tmp',
    'precision': decimal.getcontext().prec != 28,
    'pandas': pd.options.display.max_rows == 7,
    'figures': mpl.rcParams['lines.linewidth'] == 99,
    'history': len(In) - 2 + len(Out),
}
print([name for name, seen in _found.items() if seen])
";

/// What a kernel finds where nothing has left anything.
const NOTHING: &str = "[]\n";

/// All that [`PAST`] leaves and [`TRACES`] can find.
const EVERYTHING: &str = "['variables', 'patched', 'module', 'path', 'builtin', 'environment', \
    'folder', 'precision', 'pandas', 'figures', 'history']\n";

async fn succeeds(guest: &Guest, code: &str) -> Ran {
    let ran = guest.execute(code).await;
    assert!(ran.ended.outcome.is_success(), "{code}: {ran:?}");
    ran
}

pub async fn a_kernel_says_how_it_was_started(subject: &Subject) {
    let guest = subject.create().await;
    let started = guest
        .client
        .start_kernel(&StartKernel::default())
        .await
        .unwrap();
    assert_eq!(started.start, Some(subject.start), "{started:?}");
    assert_eq!(started.generation, 1);
    succeeds(&guest, "1").await;
    let info = guest.client.kernel().await.unwrap();
    assert_eq!(
        (info.start, info.generation, info.state),
        (Some(subject.start), 1, KernelState::Idle)
    );
    guest.client.shut_down_kernel().await.unwrap();
    let info = guest.client.kernel().await.unwrap();
    assert_eq!((info.start, info.state), (None, KernelState::Absent));
    guest.remove().await;
}

pub async fn a_restart_gives_a_kernel_without_a_past(subject: &Subject) {
    let guest = subject.create().await;
    assert_eq!(succeeds(&guest, TRACES).await.text(), NOTHING);
    succeeds(&guest, PAST).await;
    // The control: in the same kernel all of it is found.
    assert_eq!(succeeds(&guest, TRACES).await.text(), EVERYTHING);
    let restarted = guest.client.restart_kernel().await.unwrap();
    assert_eq!(
        (restarted.start, restarted.generation),
        (Some(subject.start), 2)
    );
    assert_eq!(succeeds(&guest, TRACES).await.text(), NOTHING);
    // The workspace is the sandbox's and not the kernel's.
    let kept = "print(open('file.txt').read())";
    assert_eq!(succeeds(&guest, kept).await.text(), "kept\n");
    guest.remove().await;
}

pub async fn kernels_of_one_trust_domain_have_nothing_in_common(subject: &Subject) {
    let (one, two) = (subject.create().await, subject.create().await);
    // One that was there before, and one that is made after.
    assert_eq!(succeeds(&two, TRACES).await.text(), NOTHING);
    succeeds(&one, PAST).await;
    assert_eq!(succeeds(&one, TRACES).await.text(), EVERYTHING);
    let three = subject.create().await;
    two.client.restart_kernel().await.unwrap();
    for guest in [&two, &three] {
        assert_eq!(succeeds(guest, TRACES).await.text(), NOTHING);
        assert!(guest.client.list(None).await.unwrap().entries.is_empty());
    }
    // Without walls the folders beside the workspace are the machine's own.
    if subject.can(Capability::NoNetwork) {
        succeeds(&one, "open('/tmp/mine', 'w'); open('/dev/shm/mine', 'w')").await;
        let look = "import os\n\
            print([d for d in ('/tmp', '/dev/shm') if os.path.exists(d + '/mine')])";
        assert_eq!(
            succeeds(&one, look).await.text(),
            "['/tmp', '/dev/shm']\n",
            "the control"
        );
        for guest in [&two, &three] {
            assert_eq!(succeeds(guest, look).await.text(), NOTHING);
        }
    }
    for guest in [one, two, three] {
        guest.remove().await;
    }
}

/// One value of every generator, which nobody else is to get.
const RANDOM: &str = "import os, random, secrets, tempfile, uuid
import numpy as np
values = {
    'random': random.random(),
    'a Random': random.Random().random(),
    'SystemRandom': random.SystemRandom().random(),
    'numpy, old': np.random.random(),
    'numpy, old state': np.random.RandomState().random(),
    'numpy, new': np.random.default_rng().random(),
    'os.urandom': os.urandom(8).hex(),
    'secrets': secrets.token_hex(8),
    'uuid1': uuid.uuid1().hex,
    'uuid4': uuid.uuid4().hex,
    'tempfile': os.path.basename(tempfile.mktemp()),
}
for name, value in values.items(): print(name, value, sep='\\t')
";

/// How many generators that is.
const GENERATORS: usize = 11;

pub async fn random_values_differ_from_sandbox_to_sandbox(subject: &Subject) {
    const SANDBOXES: usize = 3;
    let mut seen = BTreeSet::new();
    for _ in 0..SANDBOXES {
        let guest = subject.create().await;
        let ran = succeeds(&guest, RANDOM).await;
        let lines: Vec<_> = ran.text().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), GENERATORS, "{lines:?}");
        // A kernel in the place of another one is no repetition of it either.
        guest.client.restart_kernel().await.unwrap();
        let again = succeeds(&guest, RANDOM).await.text();
        for line in lines.into_iter().chain(again.lines().map(str::to_owned)) {
            assert!(!seen.contains(&line), "twice the same value: {line}");
            seen.insert(line);
        }
        guest.remove().await;
    }
    assert_eq!(seen.len(), SANDBOXES * 2 * GENERATORS);
}

/// How long the sandbox of a check may be left alone.
const IDLE_MS: u64 = 700;

pub async fn an_idle_sandbox_keeps_its_files_and_says_that_variables_are_gone(subject: &Subject) {
    let mut spec = subject.spec();
    spec.idle_limit_ms = Some(IDLE_MS);
    let guest = subject.create_as(spec).await;
    succeeds(&guest, PAST).await;
    assert_eq!(
        guest.client.kernel().await.unwrap().state,
        KernelState::Idle
    );
    // Asking how it is counts for no use of it.
    let ended = async {
        let mut look = tokio::time::interval(Duration::from_millis(50));
        while guest.client.status().await.unwrap().processes > 0 {
            look.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended)
        .await
        .expect("a sandbox that nobody uses goes on running");
    let next = succeeds(&guest, TRACES).await;
    assert_eq!(next.text(), NOTHING);
    let told = next.events.iter().find_map(|event| match event {
        EventBody::KernelReplaced { reason } => Some(reason.clone()),
        _ => None,
    });
    let reason = told.expect("nobody was told that variables are gone");
    assert!(reason.contains("without use"), "{reason}");
    let info = guest.client.kernel().await.unwrap();
    assert_eq!((info.start, info.generation), (Some(subject.start), 2));
    let kept = "print(open('file.txt').read())";
    assert_eq!(succeeds(&guest, kept).await.text(), "kept\n");
    guest.remove().await;
}

pub async fn a_sandbox_in_use_is_not_idle(subject: &Subject) {
    let mut spec = subject.spec();
    spec.idle_limit_ms = Some(IDLE_MS);
    let guest = subject.create_as(spec).await;
    succeeds(&guest, "kept = 1").await;
    // Longer than the limit without a request, and with a program that runs.
    let busy = format!("import time; time.sleep({})", 3.0 * IDLE_MS as f64 / 1000.0);
    succeeds(&guest, &busy).await;
    let ran = guest.python(&busy).await;
    assert!(ran.ended.outcome.is_success(), "{ran:?}");
    assert_eq!(succeeds(&guest, "print(kept)").await.text(), "1\n");
    guest.remove().await;
}
