# SPDX-License-Identifier: Apache-2.0
"""KernelGYM's reward client by its own names, on top of this package.

For a trainer that imports `KernelRewardClient`, `compute_kernel_reward_batch` and
`extract_kernel_code` from KernelGYM's `kernel.rewards`: import them from here.

Covered: the constructor's `reward_config` (attributes or mappings), `compute_batch_rewards`, the
three `calculate_reward_*` methods and `compute_coverage_reward`, with results as dictionaries.

Not covered: `rate_limit` and `acquire_timeout` (taken and ignored, since the server has a queue),
the workers in Ray, `extract_reference_code`, and the check before sending that `class ModelNew` is
in the code (the server's verdict says so). Different on purpose: a result without a verdict has
`reward` and `score` None and `no_verdict` true, where KernelGYM gives the penalty; the trainer has
to leave such a sample out. `compiled` and `correctness` are always the server's own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from drkernel._config import ClientOptions
from drkernel._json import JsonObject
from drkernel.async_client import AsyncClient
from drkernel.client import Client
from drkernel.replies import extract_code
from drkernel.retry import RetryPolicy
from drkernel.rewards import (
    CoverageKind,
    CoverageReward,
    calculate_reward_like_kernel,
    calculate_reward_speedup,
    calculate_reward_weighted,
    coverage,
)
from drkernel.types import EvaluateRequest, Priority, Result

__all__ = ["KernelRewardClient", "compute_kernel_reward_batch", "extract_kernel_code"]

_REQUEST_FIELDS = frozenset(part.name for part in fields(EvaluateRequest))
_SUMMARY_COUNTS = {
    "num_custom_kernel": "num_custom_kernels",
    "num_total_kernels": "num_total_kernels",
    "custom_kernel_cuda_time_in_profiling_us": "custom_kernel_cuda_time_in_profiling_us",
    "total_kernel_run_time_in_profiling_us": "total_kernel_run_time_in_profiling_us",
}


@dataclass(frozen=True)
class RewardSettings:
    """What is read of a `reward_config`; the defaults are those of the reward functions."""

    server_url: str
    timeout: float = 300.0
    task_timeout_in_client: float | None = None
    max_retries: int | None = None
    max_concurrent: int = 32
    reward_func_name: str = "calculate_reward_like_kernel"
    init_correct_weight: float = 0.5
    init_performance_weight: float = 0.5
    speedup_eps: float = 0.01
    speedup_reward_upper_bound: float = 3.0
    speedup_reward_lower_bound: float = 0.0
    penalty_score: float = 0.0
    compilation_fail: float = -0.5
    correctness_fail: float = -0.3
    perf_degrade: float = -0.1
    coverage_reward: CoverageReward | None = None

    @classmethod
    def from_config(cls, config: object) -> RewardSettings:
        config = _look(config, "reward_model") or config
        penalties = _look(_look(config, "reward_policy"), "penalties")
        read = {
            part.name: _first(_look(config, part.name), _look(penalties, part.name))
            for part in fields(cls)
        }
        read["coverage_reward"] = _coverage_rule(_look(config, "coverage_reward"))
        if not read["server_url"]:
            raise ValueError("reward_config: server_url is required")
        # Configurations are untyped; a wrong type shows where the value is used.
        return cls(**{k: v for k, v in read.items() if v is not None})  # type: ignore[arg-type]

    @property
    def options(self) -> ClientOptions:
        retries = self.max_retries
        is_endless = retries is None or retries < 0
        policy = RetryPolicy(max_failures=sys.maxsize if is_endless else max(1, int(retries or 0)))
        return ClientOptions(retry=policy, deadline_s=None)  # each task has one of its own


class KernelRewardClient:
    """Rewards for many candidates at once."""

    def __init__(self, *, reward_config: object) -> None:
        self.settings = RewardSettings.from_config(reward_config)
        self.reward_config = reward_config
        self.server_url = self.settings.server_url
        self.timeout = self.settings.timeout

    async def compute_batch_rewards(
        self,
        tasks: Sequence[Mapping[str, object]],
        *,
        use_reference_cache: bool | None = None,
        is_valid: bool | None = None,
        task_timeout: float | None = None,
        task_timeout_in_client: float | None = None,
        **_: object,
    ) -> list[JsonObject]:
        """One dictionary for each task, in order: the server's result and its reward."""
        common = _Common(use_reference_cache, is_valid, task_timeout, task_timeout_in_client)
        requests = [_request(task, common, self.settings) for task in tasks]
        async with AsyncClient(self.server_url, self.settings.options) as client:
            results = await client.evaluate_many(
                requests, max_concurrent=int(self.settings.max_concurrent)
            )
        return [self._merged(result) for result in results]

    def compute_batch_rewards_blocking(
        self, tasks: Sequence[Mapping[str, object]], *, is_valid: bool | None = None
    ) -> list[JsonObject]:
        """The same without an event loop."""
        requests = [_request(task, _Common(is_valid=is_valid), self.settings) for task in tasks]
        with Client(self.server_url, self.settings.options) as client:
            results = client.evaluate_many(
                requests, max_concurrent=int(self.settings.max_concurrent)
            )
        return [self._merged(result) for result in results]

    def calculate_reward_like_kernel(self, result: Mapping[str, object]) -> JsonObject:
        parsed, of = _parsed(result), self.settings
        reward = calculate_reward_like_kernel(
            parsed,
            compilation_fail=of.compilation_fail,
            correctness_fail=of.correctness_fail,
            perf_degrade=of.perf_degrade,
        )
        return _summary(parsed, reward)

    def calculate_reward_speedup(self, result: Mapping[str, object]) -> JsonObject:
        parsed, of = _parsed(result), self.settings
        reward = calculate_reward_speedup(
            parsed,
            penalty_score=of.penalty_score,
            init_correct_weight=of.init_correct_weight,
            init_performance_weight=of.init_performance_weight,
            speedup_reward_lower_bound=of.speedup_reward_lower_bound,
            speedup_reward_upper_bound=of.speedup_reward_upper_bound,
            coverage_reward=of.coverage_reward,
        )
        return _summary(parsed, reward)

    def calculate_reward_weighted(self, result: Mapping[str, object]) -> JsonObject:
        parsed, of = _parsed(result), self.settings
        reward = calculate_reward_weighted(
            parsed,
            penalty_score=of.penalty_score,
            init_correct_weight=of.init_correct_weight,
            init_performance_weight=of.init_performance_weight,
            speedup_eps=of.speedup_eps,
            coverage_reward=of.coverage_reward,
        )
        return _summary(parsed, reward)

    def compute_coverage_reward(self, result: Mapping[str, object]) -> JsonObject:
        parsed, rule = _parsed(result), self.settings.coverage_reward or CoverageReward()
        return {"coverage": coverage(parsed, rule.reward_type) or 0.0, **_counts(parsed)}

    def _merged(self, result: Result) -> JsonObject:
        rules = {
            "calculate_reward_like_kernel": self.calculate_reward_like_kernel,
            "calculate_reward_speedup": self.calculate_reward_speedup,
            "calculate_reward_weighted": self.calculate_reward_weighted,
        }
        rule = rules.get(self.settings.reward_func_name)
        if rule is None:
            raise ValueError(
                f"reward_config: reward_func_name is {self.settings.reward_func_name!r},"
                f" wanted one of {', '.join(rules)}"
            )
        return {**result.raw, **rule(result.raw)}


def compute_kernel_reward_batch(
    solution_strs: Sequence[str],
    ground_truths: Sequence[str],
    entry_points: Sequence[str],
    *,
    reward_config: object = None,
    uuids: Sequence[str] | None = None,
    is_valid: bool = False,
    **_: object,
) -> list[JsonObject]:
    """Rewards of whole replies, against reference codes."""
    client = KernelRewardClient(reward_config=reward_config)
    config = _look(reward_config, "reward_model") or reward_config
    names = (
        "task_timeout",
        "task_timeout_in_client",
        "num_correct_trials",
        "num_perf_trials",
        "enable_profiling",
        "verbose_errors",
        "detect_decoy_kernel",
        "reference_backend",
    )
    common = {name: _look(config, name) for name in names}
    tasks = [
        {
            **common,
            "kernel_code": extract_kernel_code(reply),
            "reference_code": reference,
            "entry_point": entry_point,
            "uuid": uuids[index] if uuids else None,
        }
        for index, (reply, reference, entry_point) in enumerate(
            zip(solution_strs, ground_truths, entry_points, strict=True)
        )
    ]
    return client.compute_batch_rewards_blocking(tasks, is_valid=is_valid)


def extract_kernel_code(solution_str: str) -> str:
    """The candidate's code in a model's reply."""
    return extract_code(solution_str)


@dataclass(frozen=True)
class _Common:
    """What holds for all tasks of a call that do not say otherwise."""

    use_reference_cache: bool | None = None
    is_valid: bool | None = None
    task_timeout: float | None = None
    task_timeout_in_client: float | None = None


def _request(
    task: Mapping[str, object], common: _Common, settings: RewardSettings
) -> EvaluateRequest:
    known = {k: v for k, v in task.items() if k in _REQUEST_FIELDS and v not in (None, "")}
    known.setdefault("kernel_code", "")
    request = EvaluateRequest(**known)  # type: ignore[arg-type]  # the server checks
    timeout_s = _first(task.get("task_timeout"), common.task_timeout, settings.timeout)
    limit_s = _first(
        task.get("task_timeout_in_client"),
        common.task_timeout_in_client,
        settings.task_timeout_in_client,
        ClientOptions().deadline_s,
    )
    is_valid = _first(request.is_valid, common.is_valid)
    uses_cache = _first(request.use_reference_cache, common.use_reference_cache)
    return replace(
        request,
        timeout=_float(timeout_s),
        # A task has to be given the time that it may run.
        deadline_s=max(_float(limit_s), _float(timeout_s)),
        priority=request.priority or Priority.normal,
        is_valid=bool(is_valid) if is_valid is not None else None,
        detect_decoy_kernel=True if is_valid else request.detect_decoy_kernel,
        use_reference_cache=True if uses_cache and request.uuid else None,
    )


def _parsed(result: Mapping[str, object]) -> Result:
    return Result.from_json({"task_id": "", **result})  # type: ignore[dict-item]


def _summary(result: Result, reward: float | None) -> JsonObject:
    right = result.correctness is True
    summary: JsonObject = {
        "reward": reward,
        "score": reward,
        "speedup": result.speedup,
        "success": result.compiled and right and result.decoy_kernel is not True,
        "correctness": right,
        "compiled": result.compiled,
        "decoy_kernel": result.decoy_kernel is True,
        "no_verdict": reward is None,
        "profiling": result.metadata.get("profiling"),
        **_counts(result),
    }
    if result.error_message is not None:
        summary["error"] = result.error_message
    return summary


def _counts(result: Result) -> JsonObject:
    return {name: result.metadata.get(key) or 0 for name, key in _SUMMARY_COUNTS.items()}


def _coverage_rule(config: object) -> CoverageReward | None:
    if not _look(config, "enable"):
        return None
    weight, kind = _look(config, "weight"), _look(config, "reward_type")
    rule = CoverageReward()
    return CoverageReward(
        rule.weight if weight is None else _float(weight),
        rule.reward_type if kind is None else CoverageKind(str(kind)),
    )


def _look(config: object, name: str) -> object:
    """A value by attribute or key; None where there is none."""
    if isinstance(config, Mapping):
        return config.get(name)
    return getattr(config, name, None)


def _first(*values: object) -> object:
    return next((value for value in values if value is not None), None)


def _float(value: object) -> float:
    if isinstance(value, int | float | str):
        return float(value)
    raise ValueError(f"wanted a number, got {value!r}")
