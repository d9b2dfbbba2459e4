"""Two copies of one process have nothing random in common."""

import ast
import os
import shutil
import tempfile
import unittest

from copies import TemplateProcess
from harness import Kernel

DRAWS = {
    "random": "random.random()",
    "random.Random": "random.Random().random()",
    "random.SystemRandom": "random.SystemRandom().random()",
    "the state of random": "random.getstate()[1][:20]",
    "numpy.random": "numpy.random.rand()",
    "numpy.random.normal": "numpy.random.normal()",
    "numpy.random.permutation": "numpy.random.permutation(1000)[:20].tolist()",
    "the state of numpy.random": "numpy.random.get_state()[1][:20].tolist()",
    "numpy.random.RandomState": "numpy.random.RandomState().rand()",
    "numpy.random.default_rng": "numpy.random.default_rng().random()",
    "numpy.random.SeedSequence": "numpy.random.SeedSequence().entropy",
    "numpy.random.MT19937": "numpy.random.MT19937().random_raw()",
    "pandas sample": "pandas.Series(range(100000)).sample(5).tolist()",
    "scipy.stats": "scipy.stats.norm.rvs()",
    "uuid1": "uuid.uuid1()",
    "uuid1, without the time": "(uuid.uuid1().clock_seq, uuid.uuid1().node)",
    "uuid4": "uuid.uuid4()",
    "uuid.getnode": "uuid.getnode() if uuid.getnode() >> 40 & 1 else uuid.uuid4()  # or a real address",
    "os.urandom": "os.urandom(16)",
    "secrets": "secrets.token_hex()",
    "names of temporary files": "next(tempfile._get_candidate_names())",
    "names of temporary folders": "tempfile.mkdtemp()",
    "the key of multiprocessing": "bytes(multiprocessing.current_process().authkey)",
    "names of semaphores": "next(multiprocessing.synchronize.SemLock._rand)",
    "names of shared memory": "multiprocessing.shared_memory._make_filename()",
    "OpenSSL": "ssl.RAND_bytes(16)",
    "OpenSSL, through another library": "cryptography.hazmat.primitives.asymmetric.ed25519.Ed25519PrivateKey.generate().private_bytes_raw()",
    "SQLite": "sqlite3.connect(':memory:').execute('select random()').fetchone()",
    "ids of mails": "email.utils.make_msgid(domain='x').split('.', 2)[2]",
    "boundaries of mails": "email.generator.Generator._make_boundary()",
    "ids of displays": "IPython.display.display_id if False else IPython.core.display_functions._new_id()",
    "ids in SVG": "svg()",
    "ids of styled tables": "pandas.DataFrame({'a': [1]}).style.uuid",
}
"""What each of them gives must differ. A source that is added to the kernel is added here."""

SETUP = """
import email.generator, email.utils, io, os, random, secrets, sqlite3, ssl, tempfile, uuid
import multiprocessing.shared_memory, multiprocessing.synchronize
import IPython.core.display_functions, matplotlib.figure, numpy, pandas, re, scipy.stats
import cryptography.hazmat.primitives.asymmetric.ed25519
def svg():
    figure = matplotlib.figure.Figure()
    figure.subplots().plot([1, 2], clip_on=True)
    text = io.StringIO()
    figure.savefig(text, format='svg')
    return re.findall('clipPath id="(.*?)"', text.getvalue())
"""

ONLY_RESEEDED_BY_US = {
    "numpy.random",
    "numpy.random.normal",
    "numpy.random.permutation",
    "the state of numpy.random",
    "pandas sample",
    "scipy.stats",
    "the key of multiprocessing",
}
"""Those that do not notice by themselves that they are in another process."""


class Generators(unittest.TestCase):
    template: TemplateProcess

    @classmethod
    def setUpClass(cls) -> None:
        cls.template = TemplateProcess()
        cls.addClassCleanup(cls.template.stop)

    def draws(self, **order: object) -> dict[str, object]:
        """What a copy draws. As root it has the same process id as every other copy here."""
        folder = tempfile.mkdtemp(prefix="kernel-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        as_root = os.geteuid() == 0
        kernel = self.template.kernel(folder, process_ids_of_its_own=as_root, **order)
        self.addCleanup(kernel.stop)
        own = kernel.run("import os; os.getpid()").result["data"]["text/plain"]
        self.assertEqual(own == "1", as_root)
        return self.drawn(kernel)

    def drawn(self, kernel: Kernel) -> dict[str, object]:
        self.assertEqual(kernel.run(SETUP).status, "ok")
        outcome = kernel.run(f"{{n: repr(eval(draw)) for n, draw in {DRAWS!r}.items()}}")
        self.assertEqual(outcome.status, "ok", outcome.events)
        return ast.literal_eval(outcome.result["data"]["text/plain"])

    def equal(self, one: dict[str, object], other: dict[str, object]) -> set[str]:
        return {name for name in DRAWS if one[name] == other[name]}

    def test_no_two_copies_draw_the_same(self):
        copies = [self.draws() for _ in range(3)]
        self.assertEqual(self.equal(copies[0], copies[1]), set())
        self.assertEqual(self.equal(copies[1], copies[2]), set())

    def test_no_two_that_were_made_in_advance_draw_the_same(self):
        copies = [self.draws(in_advance=1) for _ in range(3)]
        self.assertEqual(self.equal(copies[0], copies[1]), set())
        self.assertEqual(self.equal(copies[1], copies[2]), set())

    def test_without_new_seeds_they_would(self):
        copies = [self.draws(reseed=0) for _ in range(2)]
        self.assertEqual(self.equal(*copies), ONLY_RESEEDED_BY_US)

    def test_seeds_that_code_sets_give_the_usual_numbers(self):
        folder = tempfile.mkdtemp(prefix="kernel-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        code = (
            "import random, numpy\nrandom.seed(1); numpy.random.seed(1)\n"
            "random.random(), numpy.random.rand(2).tolist(), numpy.random.randn(2).tolist()"
        )
        kernels = [Kernel(folder), self.template.kernel(folder)]
        for kernel in kernels:
            self.addCleanup(kernel.stop)
        fresh, copy = (kernel.run(code).result["data"] for kernel in kernels)
        self.assertEqual(fresh, copy)


if __name__ == "__main__":
    unittest.main()
