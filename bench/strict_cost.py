# SPDX-License-Identifier: Apache-2.0
"""What strict correctness costs in wall time, held against kernelgym's on the same candidates.

    strict_cost.py BUILD_DIR FOLDER... [-- OPTION...]     options are those of drk eval

Judges every honest candidate below the folders under both, one behind the other. Counted are the
stages but for the start of Python. Prints the sums and their ratio, and ends with 1 from 2 on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from honest_margins import honest_candidates

POLICIES = ("strict", "kernelgym")
START = {"validate"}  # in which Python starts
MOST = 2.0


def stages_s(command: list[str]) -> float | None:
    """Seconds of the stages; None where the candidate was not accepted."""
    done = subprocess.run(command, capture_output=True, text=True)
    result = json.loads(done.stdout)
    if result["verdict"]["outcome"]["kind"] != "accepted":
        return None
    spans = [span for span in result["timeline"] if not span["name"].startswith("wait for")]
    return sum(span["duration_ms"] for span in spans if span["name"] not in START) / 1000


def main() -> int:
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    drk = str(Path(arguments[0]) / "bin/drk")
    sums = dict.fromkeys(POLICIES, 0.0)
    count = 0
    for folder in arguments[1:split]:
        for _, reference, candidate, backend, _ in honest_candidates(Path(folder)):
            took = [
                stages_s(
                    [drk, "eval", "--json", "--backend", backend, "--correctness", policy]
                    + [*arguments[split + 1 :], str(reference), str(candidate)]
                )
                for policy in POLICIES
            ]
            if None in took:
                continue
            count += 1
            for policy, seconds in zip(POLICIES, took, strict=True):
                sums[policy] += seconds or 0.0
    ratio = sums["strict"] / sums["kernelgym"]
    print(f"{count} candidates: strict {sums['strict']:.1f} s, kernelgym {sums['kernelgym']:.1f} s")
    print(f"ratio {ratio:.2f}")
    return 1 if ratio >= MOST else 0


if __name__ == "__main__":
    sys.exit(main())
