"""The sum of the squares of 1 to 100, counted in a sandbox and saved as a file there.

GLOVEBOX_URL and GLOVEBOX_KEY name a server and a key with which code may be run.
"""

import os

from glovebox_client import Client

CODE = """
import pandas as pd

total = sum(n * n for n in range(1, limit + 1))
pd.DataFrame({"limit": [limit], "sum": [total]}).to_csv("squares.csv", index=False)
total
"""

with Client(os.environ["GLOVEBOX_URL"], os.environ["GLOVEBOX_KEY"]) as client:
    with client.sandbox() as sandbox:
        sandbox.put("limit.txt", b"100")
        sandbox.result("limit = int(open('limit.txt').read())")
        result = sandbox.result(CODE)
        print("the sum is", result.value, "" if result.succeeded else result.error)
        for artifact in sandbox.artifacts():
            print(f"{artifact.name}, version {artifact.version}:")
            print(artifact.content().decode(), end="")
