# SPDX-License-Identifier: Apache-2.0
"""The drop-in for KernelGYM's reward client."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from drkernel.kernelgym import (
    KernelRewardClient,
    compute_kernel_reward_batch,
    extract_kernel_code,
)
from hostile_server import HostileServer, Seen, answer, reply, result_body

COVERAGE = {
    "num_custom_kernels": 1,
    "num_total_kernels": 4,
    "custom_kernel_cuda_time_in_profiling_us": 30.0,
    "total_kernel_run_time_in_profiling_us": 40.0,
}


def config(url: str = "http://127.0.0.1:9", **changes: Any) -> SimpleNamespace:
    """As a trainer's reward_model configuration."""
    values: dict[str, Any] = {
        "server_url": url,
        "timeout": 30,
        "task_timeout": 20,
        "task_timeout_in_client": 60,
        "max_retries": 3,
        "rate_limit": 8,
        "max_concurrent": 4,
        "acquire_timeout": 10,
        "reward_func_name": "calculate_reward_speedup",
        "init_correct_weight": 0.5,
        "init_performance_weight": 0.5,
        "speedup_eps": 0.01,
        "speedup_reward_upper_bound": 3.0,
        "speedup_reward_lower_bound": 0.0,
        "reward_policy": SimpleNamespace(
            penalties={"penalty_score": -2.0, "correctness_fail": -0.4}
        ),
        "coverage_reward": SimpleNamespace(enable=True, weight=0.5, reward_type="time_coverage"),
        "num_perf_trials": 10,
        "num_correct_trials": 3,
        "enable_profiling": True,
        "verbose_errors": True,
        "detect_decoy_kernel": False,
        "reference_backend": None,
    }
    return SimpleNamespace(**{**values, **changes})


def judge(seen: Seen) -> tuple[int, object]:
    code, task_id = seen.body["kernel_code"], seen.body["task_id"]
    if "lost" in code:
        return 503, {"detail": "lost a worker"}
    if "wrong" in code:
        return 200, result_body(task_id, correctness=False, speedup=0)
    return 200, result_body(task_id, metadata=COVERAGE)


def test_replies_are_rewarded_in_order(hostile: HostileServer) -> None:
    hostile.script(otherwise=answer(judge))
    replies = [f"```python\nclass ModelNew: {word}\n```" for word in ("right", "wrong", "lost")]
    rewards = compute_kernel_reward_batch(
        [*replies, "no"],
        ["class Model: pass"] * 4,
        ["Model"] * 4,
        reward_config=SimpleNamespace(reward_model=config(hostile.url)),
        uuids=["u0", "u1", "u2", "u3"],
        is_valid=True,
    )
    # 0.5 + 0.5 * 1.5 + 0.5 * 30 / 40; wrong; no verdict; too short to be looked at
    assert [one["reward"] for one in rewards] == [1.625, 0.0, None, -2.0]
    assert [one["score"] for one in rewards] == [1.625, 0.0, None, -2.0]
    assert [one["no_verdict"] for one in rewards] == [False, False, True, False]
    assert [one["success"] for one in rewards] == [True, False, False, False]
    assert rewards[0]["num_custom_kernel"] == 1 and rewards[0]["status"] == "completed"
    assert "lost a worker" in str(rewards[2]["error"])

    body = hostile.requests[0].body
    assert body["kernel_code"].startswith("class ModelNew: ")
    assert {name: body[name] for name in ("timeout", "num_perf_trials", "num_correct_trials")} == {
        "timeout": 20,
        "num_perf_trials": 10,
        "num_correct_trials": 3,
    }
    assert body["is_valid"] is True and body["detect_decoy_kernel"] is True
    assert 59 < body["deadline_s"] <= 60
    assert "rate_limit" not in body and "task_timeout" not in body


def test_the_asynchronous_method_takes_tasks(hostile: HostileServer) -> None:
    hostile.script(otherwise=answer(judge))
    client = KernelRewardClient(reward_config=config(hostile.url))
    tasks: list[dict[str, object]] = [
        {"reference_code": "class Model: pass", "kernel_code": "class ModelNew: right", "uuid": ""},
        {"kernel_code": "class ModelNew: wrong", "uuid": "u", "use_reference_cache": True},
    ]
    rewards = asyncio.run(
        client.compute_batch_rewards(tasks, task_timeout=40, task_timeout_in_client=1, ignored=1)
    )
    assert [one["reward"] for one in rewards] == [1.625, 0.0]
    right, wrong = sorted((seen.body for seen in hostile.requests), key=lambda b: b["kernel_code"])
    assert "use_reference_cache" not in right and wrong["use_reference_cache"] is True
    # The time to wait is never shorter than the time to run.
    assert right["timeout"] == 40 and 39 < right["deadline_s"] <= 40
    assert asyncio.run(client.compute_batch_rewards([])) == []


@pytest.mark.parametrize(
    ("method", "right", "wrong", "failed"),
    [
        ("calculate_reward_speedup", 1.625, 0.0, -2.0),
        ("calculate_reward_weighted", 1.375, 0.0, -2.0),
        ("calculate_reward_like_kernel", 0.6, -0.4, -0.5),
    ],
)
def test_the_rules_take_dictionaries(
    method: str, right: float, wrong: float, failed: float
) -> None:
    rule = getattr(KernelRewardClient(reward_config=config()), method)
    assert rule(result_body("t", metadata=COVERAGE))["reward"] == pytest.approx(right)
    assert rule(result_body("t", correctness=False, speedup=0))["reward"] == wrong
    assert rule({"status": "failed", "error_message": "x"})["reward"] == failed
    assert rule({"status": "failed", "error_message": "x"})["error"] == "x"
    assert rule({"status": "failed", "fault": "infra"})["reward"] is None


def test_coverage_alone() -> None:
    client = KernelRewardClient(reward_config=config())
    assert client.compute_coverage_reward(result_body("t", metadata=COVERAGE)) == {
        "coverage": 0.75,
        "num_custom_kernel": 1,
        "num_total_kernels": 4,
        "custom_kernel_cuda_time_in_profiling_us": 30.0,
        "total_kernel_run_time_in_profiling_us": 40.0,
    }
    assert client.compute_coverage_reward(result_body("t"))["coverage"] == 0.0


def test_a_configuration_may_be_a_mapping_and_leave_most_out() -> None:
    client = KernelRewardClient(reward_config={"server_url": "http://127.0.0.1:9"})
    assert client.calculate_reward_like_kernel(result_body("t"))["reward"] == 0.6
    assert client.settings.coverage_reward is None


@pytest.mark.parametrize("changes", [{"server_url": None}, {"server_url": ""}])
def test_a_configuration_without_a_server_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="server_url"):
        KernelRewardClient(reward_config=config(**changes))


def test_an_unknown_rule_is_refused(hostile: HostileServer) -> None:
    hostile.script(otherwise=answer(judge))
    client = KernelRewardClient(reward_config=config(hostile.url, reward_func_name="best"))
    with pytest.raises(ValueError, match="calculate_reward_weighted"):
        client.compute_batch_rewards_blocking([{"kernel_code": "class ModelNew"}])


def test_so_many_retries_and_no_more(hostile: HostileServer) -> None:
    hostile.script(otherwise=reply(500, {"detail": "x"}))
    client = KernelRewardClient(reward_config=config(hostile.url, max_retries=2))
    (one,) = client.compute_batch_rewards_blocking([{"kernel_code": "class ModelNew"}])
    assert one["reward"] is None and len(hostile.requests) == 2


def test_code_is_taken_out_of_replies() -> None:
    assert extract_kernel_code("Here:\n```python\nx = 1\n```\n") == "x = 1\n"
