# SPDX-License-Identifier: Apache-2.0
"""How near honest candidates come to refusal: their largest error in units of what is allowed.

    honest_margins.py BUILD_DIR FOLDER... [-- OPTION...]     options are those of drk eval

Judges every candidate below the folders that is expected to be accepted. Over 0.5 is within a factor
of two of refusal, and the end is 1 then.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NEAR = 0.5


def honest_candidates(folder: Path) -> Iterator[tuple[str, Path, Path, str, bool]]:
    """Name, reference, candidate, backend, and whether it needs a GPU."""
    for path in sorted(folder.rglob("case.json")):
        case = json.loads(path.read_text())
        if case["expect"]["verdict"] == "accept":
            files = path.parent / "reference.py", path.parent / "candidate.py"
            yield case["name"], *files, case["backend"], case["needs"] == "gpu"
    for path in sorted(folder.rglob("problem.json")):
        problem = json.loads(path.read_text())
        for candidate in problem["candidates"]:
            if candidate["expect"] == "accept":
                file = path.parent / candidate["file"]
                name = f"{problem['name']}/{file.stem}"
                needs_gpu = candidate.get("needs") == "gpu"
                yield name, path.parent / "reference.py", file, "triton", needs_gpu


def worst_trial(result: dict[str, Any]) -> dict[str, Any]:
    compared = [trial for trial in result["observations"]["trials"] if trial["compared"]]
    return max(compared, key=lambda trial: float(trial["comparison"]["limit_share"]))


def main() -> int:
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    drk = str(Path(arguments[0]) / "bin/drk")
    options = arguments[split + 1 :]
    near = refused = judged = 0
    print(f"{'share':>8}  {'largest error':>13}  {'rule':<9} {'inputs':<8} candidate")
    for folder in arguments[1:split]:
        for name, reference, candidate, backend, needs_gpu in honest_candidates(Path(folder)):
            command = [drk, "eval", "--json", "--backend", backend, *options]
            done = subprocess.run(
                [*command, str(reference), str(candidate)], capture_output=True, text=True
            )
            result = json.loads(done.stdout)
            outcome = result["verdict"]["outcome"]["kind"]
            if outcome == "undecided" and needs_gpu:
                continue
            judged += 1
            if outcome != "accepted":
                refused += 1
                print(f"{'-':>8}  {'-':>13}  {'-':<9} {'-':<8} {name}: {outcome}", flush=True)
                continue
            trial = worst_trial(result)
            comparison = trial["comparison"]
            share = comparison["limit_share"]
            near += share > NEAR
            rule = "float64" if comparison["by_float64"] else "tolerance"
            error = comparison["max_abs_error"]
            print(
                f"{share:>8.3f}  {error:>13.3g}  {rule:<9} {trial['inputs']:<8} {name}", flush=True
            )
    print(f"{judged} judged, {near} within a factor of two of refusal, {refused} refused")
    return int(near + refused > 0)


if __name__ == "__main__":
    sys.exit(main())
