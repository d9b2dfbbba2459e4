"""A test case with a kernel of its own in a folder of its own."""

import shutil
import tempfile
import unittest

from harness import Kernel, Outcome


class KernelCase(unittest.TestCase):
    """Starts one kernel for all tests of the class; `fresh` starts one for a single test.

    `new_kernel` may be replaced, to have the same tests with kernels of another origin.
    """

    kernel: Kernel
    folder: str

    @classmethod
    def new_kernel(cls, folder: str) -> Kernel:
        """A kernel that works in a folder."""
        return Kernel(folder)

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.mkdtemp(prefix="kernel-test-")
        cls.kernel = cls.new_kernel(cls.folder)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.kernel.stop()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def fresh(self) -> Kernel:
        """A kernel for this test only."""
        folder = tempfile.mkdtemp(prefix="kernel-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        kernel = self.new_kernel(folder)
        self.addCleanup(kernel.stop)
        return kernel

    def ok(self, code: str, **options: object) -> Outcome:
        """Runs code that must end well."""
        outcome = self.kernel.run(code, **options)  # type: ignore[arg-type]
        self.assertEqual(outcome.status, "ok", outcome.events)
        self.assertIsNone(outcome.error)
        return outcome

    def fails(self, code: str, name: str) -> dict[str, str]:
        """Runs code that must end with an error of that name, told of exactly once."""
        outcome = self.kernel.run(code)
        self.assertEqual(outcome.status, "error", outcome.events)
        errors = outcome.all("error")
        self.assertEqual([error["ename"] for error in errors], [name], outcome.events)
        return errors[0]

    def still_in_step(self, kernel: Kernel | None = None) -> None:
        """The next calls get their own output, result and reply."""
        kernel = kernel or self.kernel
        for number in range(3):
            outcome = kernel.run(f"print('step {number}')\n{number} + 40")
            self.assertEqual(outcome.stdout, f"step {number}\n")
            self.assertEqual(outcome.result["data"], {"text/plain": str(number + 40)})
            self.assertEqual(outcome.status, "ok")
