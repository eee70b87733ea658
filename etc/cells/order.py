#!/usr/bin/python3
"""Order the jobs of a virtual cluster: the scheduler of a site's own, as an example for `scheduler:` in cells.yaml.

Jobs of a higher level go first. Then the user who received the least GPU time with the jobs that are here now, then jobs
that have little of their time limit left. Copy this file to a place that only root may write to, and make it executable.
"""
import collections
import json
import sys

view = json.load(sys.stdin)
received = collections.Counter()
for job in view["jobs"]:
    received[job["user"]] += job["received"]


def place(job):
    left = job["limit"] - job["ran"] if "limit" in job else float("inf")
    return -job["level"], received[job["user"]], left, job["submitted"]


json.dump({"order": [job["job"] for job in sorted(view["jobs"], key=place)]}, sys.stdout)
