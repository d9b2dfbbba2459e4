"""Asks a real server what its document says it answers, with requests that are made up.

    python run.py PROGRAM TREE OUTPUT

It starts PROGRAM (`glovebox`) on the root tree of the data folder TREE, lets schemathesis throw
requests at it, well and badly formed, and fails on an answer that is a failure of the server's or
that the document does not have, and where something is taken that the document does not allow.
Logs go into the folder OUTPUT. The seed is fixed.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from server import Server

SEED = "20"
EXAMPLES = os.environ.get("GLOVEBOX_CONTRACT_EXAMPLES", "8")

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "missing_required_header",
    "negative_data_rejection",
]

# What would take away what all others are tried on, never ends, or makes a sandbox at each try.
LEFT_OUT = {
    "account_change_password": "ends the session",
    "account_end_session": "ends the session",
    "session_sign_out": "ends the session",
    "members_remove": "takes the member away",
    "profiles_change_deployment": "switches code execution off",
    "profiles_disable": "switches the profile off",
    "sandboxes_end": "ends the sandbox",
    "admin_end_sandbox": "ends the sandbox",
    "executions_events": "is a stream",
    "threads_events": "is a stream, and has no end",
    "threads_delete": "takes the thread away",
    "attachments_delete": "takes the file away",
    "knowledge_delete": "takes the file away",
    "profiles_test": "makes a sandbox at each call",
    "profiles_canary": "makes a sandbox at each call",
}

# What programs call with a key.
OF_KEYS = [
    "sandboxes",
    "executions",
    "files",
    "artifacts",
    "threads",
    "attachments",
    "knowledge",
]


def schemathesis(address: str, header: str, more: list[str], ids: dict, folder: str) -> bool:
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/api/v1/openapi.json"),
        *("--header", header, "--generation-with-security-parameters", "false"),
        *("--seed", SEED, "--generation-database", "none"),
        *("--phases", "examples,coverage,fuzzing", "--max-examples", EXAMPLES),
        *("--checks", ",".join(CHECKS), "--continue-on-failure", "--suppress-health-check", "all"),
        *("--request-timeout", "30", "--warnings", "off", "--no-color"),
        *more,
    ]
    for name in LEFT_OUT:
        command += ["--exclude-operation-id", name]
    here = str(Path(__file__).parent)
    environment = os.environ | {
        "PYTHONPATH": here,
        "PYTHONDONTWRITEBYTECODE": "1",
        "SCHEMATHESIS_HOOKS": "hooks",
        "GLOVEBOX_CONTRACT_IDS": json.dumps(ids),
    }
    return subprocess.run(command, env=environment, cwd=folder, check=False).returncode == 0


def main(program: str, tree: str, output: str) -> int:
    log = Path(output).resolve() / "contract.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Server(Path(program), tree, log) as server:
        ids, key = server.open()
        tags = [word for tag in OF_KEYS for word in ("--include-tag", tag)]
        good = [
            schemathesis(server.address, f"Cookie: {server.cookie}", [], ids, folder),
            schemathesis(server.address, f"Authorization: Bearer {key}", tags, ids, folder),
        ]
    if not all(good):
        print(f"contract: the server does not keep its document; its log is {log}", file=sys.stderr)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
