#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums up a folder of test results, as scripts/run_tests.sh leaves it, into one line.

The folder holds what there is of: ctest.xml (JUnit) and ctest.log, direct/NAME.log and NAME.rc (programs
run without ctest), gtest/NAME.json (counts that the program NAME left), pytest.xml; ctest.rc, pytest.rc.
A gtest program counts as its test cases, any other program as one test, a crash as one more failure.
"""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

GTEST_BANNER = "[==========] Running "
# GoogleTest 1.12 keeps the reason of a skip out of its JSON, so it is read from the text:
# "[ RUN      ] Suite.Case", "path:line: Skipped", the reason, "[  SKIPPED ] Suite.Case (0 ms)".
GTEST_SKIP = re.compile(r": Skipped\n(.*?)\n+\[  SKIPPED \] (\S+) \(", re.DOTALL)
# How a program failed stands only at the end of ctest's log: "  2 - judge_test (Timeout)".
CTEST_FAILURE = re.compile(r"^\s+\d+ - (\S+) \((.+)\)$", re.MULTILINE)
TIMED_OUT_EXIT_CODES = (124, 137)  # timeout(1): ended by TERM, by KILL


class Outcome(Enum):
    passed = "passed"
    failed = "failed"
    skipped = "skipped"


@dataclass(frozen=True)
class Case:
    """One test; `detail` says why it was skipped or how it failed."""

    name: str
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True)
class Program:
    """A test program that was run, and what its exit said."""

    name: str
    outcome: Outcome
    detail: str
    output: str


def ctest_programs(junit: Path, log: Path) -> Iterator[Program]:
    failures: dict[str, str] = dict(CTEST_FAILURE.findall(log.read_text(errors="replace")))
    for test in ElementTree.parse(junit).iter("testcase"):
        name = test.get("name", "?")
        output = test.findtext("system-out") or ""
        skipped = test.find("skipped")
        if test.get("status") == "run":
            yield Program(name, Outcome.passed, "", output)
        elif test.get("status") == "disabled":
            yield Program(name, Outcome.skipped, "disabled", output)
        elif skipped is not None and skipped.get("message", "").startswith("SKIP_"):
            last_line = (output.strip().splitlines() or ["no reason given"])[-1]
            yield Program(name, Outcome.skipped, last_line, output)
        else:  # failed, or not run: no such program, a fixture failed
            yield Program(name, Outcome.failed, failures.get(name, "failed"), output)


def direct_programs(folder: Path) -> Iterator[Program]:
    for log in sorted(folder.glob("*.log")):
        exit_code = int(log.with_suffix(".rc").read_text())
        outcome = Outcome.failed if exit_code else Outcome.passed
        detail = "timed out" if exit_code in TIMED_OUT_EXIT_CODES else f"exit code {exit_code}"
        yield Program(log.stem, outcome, detail, log.read_text(errors="replace"))


def gtest_cases(counts: Path, output: str) -> Iterator[Case]:
    reasons = {name: " ".join(reason.split()) for reason, name in GTEST_SKIP.findall(output)}
    for suite in json.loads(counts.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{suite['name']}.{test['name']}"
            if test.get("failures"):
                yield Case(name, Outcome.failed)
            elif test["status"] == "NOTRUN":
                yield Case(name, Outcome.skipped, "disabled")
            elif test["result"] == "SKIPPED":
                yield Case(name, Outcome.skipped, reasons.get(name) or "no reason given")
            else:
                yield Case(name, Outcome.passed)


def program_cases(program: Program, counts: Path) -> list[Case]:
    if not counts.is_file():
        if program.outcome is Outcome.passed and GTEST_BANNER in program.output:
            return [Case(program.name, Outcome.failed, f"left no counts in {counts.name}")]
        return [Case(program.name, program.outcome, program.detail)]
    cases = list(gtest_cases(counts, program.output))
    explained = any(case.outcome is Outcome.failed for case in cases)
    if program.outcome is Outcome.failed and not explained:  # say, a sanitizer's report at exit
        cases.append(Case(program.name, Outcome.failed, f"{program.detail} after its tests"))
    return cases


def pytest_cases(junit: Path) -> Iterator[Case]:
    for test in ElementTree.parse(junit).iter("testcase"):
        name = f"{test.get('classname')}.{test.get('name')}"
        skipped = test.find("skipped")
        if test.find("failure") is not None or test.find("error") is not None:
            yield Case(name, Outcome.failed)
        elif skipped is not None:
            yield Case(name, Outcome.skipped, skipped.get("message") or "no reason given")
        else:
            yield Case(name, Outcome.passed)


def runner_cases(results: Path, runner: str, cases: list[Case]) -> list[Case]:
    """`cases`, and a failure if the runner says that something failed and no case does."""
    code_file = results / f"{runner}.rc"
    exit_code = int(code_file.read_text()) if code_file.is_file() else 0
    if exit_code and all(case.outcome is not Outcome.failed for case in cases):
        return [*cases, Case(runner, Outcome.failed, f"exit code {exit_code}")]
    return cases


def collect(results: Path) -> list[Case]:
    programs: list[Program] = list(direct_programs(results / "direct"))
    if (results / "ctest.xml").is_file():
        programs += ctest_programs(results / "ctest.xml", results / "ctest.log")
    tested: list[Case] = []
    for program in programs:
        tested += program_cases(program, results / "gtest" / f"{program.name}.json")

    scripted: list[Case] = []
    if (results / "pytest.xml").is_file():
        scripted += pytest_cases(results / "pytest.xml")
    return runner_cases(results, "ctest", tested) + runner_cases(results, "pytest", scripted)


def main() -> int:
    cases = collect(Path(sys.argv[1]))
    count = {outcome: sum(case.outcome is outcome for case in cases) for outcome in Outcome}
    for case in sorted(cases, key=lambda case: (case.outcome.value, case.name)):
        if case.outcome is not Outcome.passed:
            print(
                f"{case.outcome.value}: {case.name}" + (f": {case.detail}" if case.detail else "")
            )
    if count[Outcome.passed] + count[Outcome.failed] == 0:
        print("failed: no test ran")
    print(", ".join(f"{count[outcome]} {outcome.value}" for outcome in Outcome))
    return 0 if count[Outcome.passed] and not count[Outcome.failed] else 1


if __name__ == "__main__":
    sys.exit(main())
