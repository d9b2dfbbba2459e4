//! What people do in the cells of a notebook.

use glovebox_protocol::event::{EventBody, Outcome};
use glovebox_protocol::process::Cancel;

use super::subject::until_output;
use super::{Guest, Ran, Subject};

async fn succeeds(guest: &Guest, code: &str) -> Ran {
    let ran = guest.execute(code).await;
    assert!(ran.ended.outcome.is_success(), "{code}: {ran:?}");
    ran
}

/// Runs cells one after the other in one kernel and holds what each prints against what it has to.
async fn print(subject: &Subject, cells: &[(&str, &str)]) {
    let guest = subject.create().await;
    for (code, expected) in cells {
        let ran = succeeds(&guest, code).await;
        assert_eq!(ran.text(), *expected, "{code}: {ran:?}");
    }
    guest.remove().await;
}

pub async fn a_figure_is_shown_as_a_picture(subject: &Subject) {
    let guest = subject.create().await;
    for code in [
        "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.title('Größe 测试')",
        "fig, ax = plt.subplots()\nax.bar(['a', 'b'], [1, 2])\nplt.show()",
    ] {
        let ran = succeeds(&guest, code).await;
        let picture = ran.events.iter().find_map(|event| match event {
            EventBody::Display(shown) => shown.data.get("image/png")?.as_str(),
            _ => None,
        });
        let picture = picture.unwrap_or_else(|| panic!("no picture: {ran:?}"));
        // The beginning of every PNG, in base 64.
        assert!(picture.starts_with("iVBORw0KGgo"), "{code}");
    }
    let drawn = "fig.savefig('bars.png'); print(open('bars.png', 'rb').read(4))";
    assert_eq!(succeeds(&guest, drawn).await.text(), "b'\\x89PNG'\n");
    guest.remove().await;
}

pub async fn a_table_is_shown_as_one(subject: &Subject) {
    let guest = subject.create().await;
    let code = "import pandas as pd\n\
        table = pd.DataFrame({'kind': ['a', 'b', 'a'], 'size': [1, 2, 3]})\n\
        table.groupby('kind').sum()";
    let ran = succeeds(&guest, code).await;
    let Some(EventBody::Result { shown, .. }) = ran.events.last() else {
        panic!("no result: {ran:?}");
    };
    let html = shown.data["text/html"].as_str().unwrap();
    assert!(
        html.contains("<table") && html.contains("<td>4</td>"),
        "{html}"
    );
    assert!(shown.data["text/plain"].as_str().unwrap().contains("size"));
    guest.remove().await;
}

pub async fn await_works_at_the_top_of_a_cell(subject: &Subject) {
    print(
        subject,
        &[
            (
                "import asyncio\n\
                 async def double(n):\n\
                 \x20   await asyncio.sleep(0.01)\n\
                 \x20   return 2 * n\n\
                 print(await double(21))",
                "42\n",
            ),
            (
                "print(await asyncio.gather(*(double(n) for n in range(3))))",
                "[0, 2, 4]\n",
            ),
        ],
    )
    .await;
}

pub async fn threads_run(subject: &Subject) {
    print(
        subject,
        &[
            (
                "import threading\n\
                 done = []\n\
                 threads = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]\n\
                 for t in threads: t.start()\n\
                 for t in threads: t.join()\n\
                 print(sorted(done))",
                "[0, 1, 2, 3, 4, 5, 6, 7]\n",
            ),
            (
                "from concurrent.futures import ThreadPoolExecutor\n\
                 import numpy as np\n\
                 with ThreadPoolExecutor(4) as pool:\n\
                 \x20   print([int(s) for s in pool.map(lambda n: np.ones((50, 50)).dot(np.ones((50, n))).sum(), [1, 2])])",
                "[2500, 5000]\n",
            ),
        ],
    )
    .await;
}

pub async fn programs_are_started(subject: &Subject) {
    print(
        subject,
        &[
            (
                "import subprocess, sys\n\
                 print(subprocess.run(['cat'], input=b'in', capture_output=True).stdout)",
                "b'in'\n",
            ),
            (
                "subprocess.run([sys.executable, '-c', 'import pandas; print(\"own\")'], check=True);",
                "own\n",
            ),
            ("!echo one | tr a-z A-Z", "ONE\n"),
            ("lines = !printf 'a\\nb'\nprint(list(lines))", "['a', 'b']\n"),
            ("%%bash\nfor n in 1 2; do echo $n; done", "1\n2\n"),
            (
                "import os\nos.system('echo from a shell'); print(os.popen('echo x').read())",
                "from a shell\nx\n\n",
            ),
        ],
    )
    .await;
}

pub async fn processes_share_work(subject: &Subject) {
    print(
        subject,
        &[
            (
                "import math, multiprocessing as mp\n\
                 def square(n): return n * n\n\
                 with mp.get_context('fork').Pool(2) as pool: print(pool.map(square, range(5)))",
                "[0, 1, 4, 9, 16]\n",
            ),
            (
                "with mp.get_context('spawn').Pool(2) as pool: print(pool.map(math.sqrt, [4, 9]))",
                "[2.0, 3.0]\n",
            ),
            (
                "context = mp.get_context('fork')\n\
                 queue, lock, total = context.Queue(), context.Lock(), context.Value('i', 0)\n\
                 def work(n):\n\
                 \x20   with lock: total.value += n\n\
                 \x20   queue.put(n)\n\
                 workers = [context.Process(target=work, args=(n,)) for n in range(4)]\n\
                 for w in workers: w.start()\n\
                 print(sorted(queue.get() for _ in workers))\n\
                 for w in workers: w.join()\n\
                 print(total.value, {w.exitcode for w in workers})",
                "[0, 1, 2, 3]\n6 {0}\n",
            ),
            (
                "from concurrent.futures import ProcessPoolExecutor\n\
                 with ProcessPoolExecutor(2, mp_context=context) as pool: print(list(pool.map(square, [3])))",
                "[9]\n",
            ),
        ],
    )
    .await;
}

pub async fn memory_is_shared_between_processes(subject: &Subject) {
    print(
        subject,
        &[(
            "import multiprocessing as mp\n\
             import numpy as np\n\
             from multiprocessing.shared_memory import SharedMemory\n\
             block = SharedMemory(create=True, size=800)\n\
             seen = np.ndarray(100, dtype='f8', buffer=block.buf); seen[:] = 0\n\
             def fill(name):\n\
             \x20   inner = SharedMemory(name=name)\n\
             \x20   np.ndarray(100, dtype='f8', buffer=inner.buf)[:] = 1\n\
             \x20   inner.close()\n\
             child = mp.get_context('fork').Process(target=fill, args=(block.name,))\n\
             child.start(); child.join()\n\
             print(child.exitcode, seen.sum())\n\
             del seen; block.close(); block.unlink()",
            "0 100.0\n",
        )],
    )
    .await;
}

pub async fn databases_are_kept_in_files_and_in_memory(subject: &Subject) {
    print(
        subject,
        &[
            (
                "import sqlite3\n\
                 for place in ('data.db', ':memory:'):\n\
                 \x20   with sqlite3.connect(place) as base:\n\
                 \x20       base.execute('create table t (n integer)')\n\
                 \x20       base.executemany('insert into t values (?)', [(n,) for n in range(1000)])\n\
                 \x20       print(base.execute('select sum(n) from t').fetchone())",
                "(499500,)\n(499500,)\n",
            ),
            (
                "import pandas as pd\n\
                 print(len(pd.read_sql('select * from t where n < 10', sqlite3.connect('data.db'))))",
                "10\n",
            ),
        ],
    )
    .await;
}

pub async fn every_wait_can_be_interrupted(subject: &Subject) {
    let guest = subject.create().await;
    // Before anything is interrupted: half an import is not what is looked at here.
    let before = "import asyncio, queue, subprocess, threading\n\
                  import numpy as np, pandas as pd\n\
                  kept = 7";
    succeeds(&guest, before).await;
    for code in [
        "while True: np.ones((100, 100)) @ np.ones((100, 100))",
        "while True: pd.DataFrame({'a': range(1000)}).groupby('a').sum()",
        "await asyncio.sleep(600)",
        "subprocess.run(['sleep', '600'])",
        "!sleep 600",
        "threading.Event().wait()",
        "queue.Queue().get()",
    ] {
        let cell = guest.cell(&format!("print('up', flush=True)\n{code}"));
        let mut running = guest.client.execute(&cell).await.unwrap();
        until_output(&mut running).await;
        let interrupt = guest.client.interrupt_kernel(Cancel::Interrupt);
        interrupt.await.unwrap();
        let ran = Ran::of(running).await;
        let expected = Outcome::Cancelled { killed: false };
        assert_eq!(ran.ended.outcome, expected, "{code}: {ran:?}");
        let after = succeeds(&guest, "print(kept)").await;
        assert_eq!(after.text(), "7\n", "{code}");
    }
    guest.remove().await;
}

pub async fn code_may_fork(subject: &Subject) {
    print(
        subject,
        &[
            (
                "import os\n\
                 pid = os.fork()\n\
                 if pid == 0:\n\
                 \x20   print('child', flush=True); os._exit(5)\n\
                 print('parent', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
                "child\nparent 5\n",
            ),
            // One that comes back to the end of the cell ends there, and answers to nobody.
            (
                "pid = os.fork()\nif pid: print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
                "0\n",
            ),
            ("print('next')", "next\n"),
            (
                "import random\n\
                 reader, writer = os.pipe()\n\
                 if os.fork() == 0: os.write(writer, str(random.random()).encode()); os._exit(0)\n\
                 os.wait(); print(os.read(reader, 99).decode() != str(random.random()))",
                "True\n",
            ),
        ],
    )
    .await;
}

pub async fn documents_of_every_kind_are_made(subject: &Subject) {
    print(
        subject,
        &[
            (
                "import pandas as pd\n\
                 pd.DataFrame({'a': [1]}).to_excel('t.xlsx'); print(pd.read_excel('t.xlsx')['a'].sum())",
                "1\n",
            ),
            (
                "import pptx, docx\n\
                 deck = pptx.Presentation(); deck.slides.add_slide(deck.slide_layouts[0]); deck.save('t.pptx')\n\
                 text = docx.Document(); text.add_paragraph('x'); text.save('t.docx')\n\
                 print(len(pptx.Presentation('t.pptx').slides), docx.Document('t.docx').paragraphs[0].text)",
                "1 x\n",
            ),
            (
                "from reportlab.pdfgen.canvas import Canvas\n\
                 page = Canvas('t.pdf'); page.drawString(9, 9, 'x'); page.save()\n\
                 from PIL import Image\n\
                 Image.new('RGB', (4, 4)).save('t.png')\n\
                 print(open('t.pdf', 'rb').read(5), Image.open('t.png').size)",
                "b'%PDF-' (4, 4)\n",
            ),
        ],
    )
    .await;
}
