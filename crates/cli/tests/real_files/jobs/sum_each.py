"""Reads every CSV file of the working folder, whatever its name is, and saves its sum beside it."""

import os

import pandas as pd

for name in sorted(os.listdir(b".")):
    if not name.endswith(b".csv"):
        continue
    total = pd.read_csv(os.fsdecode(name))["n"].sum()
    print(name, total)
    os.makedirs("sums", exist_ok=True)
    pd.DataFrame({"sum": [total]}).to_csv(os.fsdecode(b"sums/" + name), index=False)
