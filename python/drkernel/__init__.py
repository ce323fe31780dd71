# SPDX-License-Identifier: Apache-2.0
"""Client of drkernel, a server that judges GPU kernels written by language models."""

from drkernel._config import DEFAULT_URL, ClientOptions
from drkernel._version import __version__
from drkernel.async_client import AsyncClient
from drkernel.client import Client
from drkernel.errors import (
    Conflict,
    DeadlineExceeded,
    DrkernelError,
    NotFound,
    NoVerdict,
    ProtocolError,
    QueueFull,
    RequestError,
    ServerError,
    ServerUnreachable,
    Unauthorized,
    ValidationError,
)
from drkernel.metrics import THRESHOLDS, FastP, fast_p, fast_p_best_so_far, fast_p_per_turn
from drkernel.replies import extract_code
from drkernel.retry import RetryPolicy
from drkernel.rewards import (
    CoverageReward,
    calculate_reward_like_kernel,
    calculate_reward_speedup,
    calculate_reward_weighted,
)
from drkernel.types import (
    BatchItem,
    BatchResult,
    BatchState,
    Cancellation,
    EvaluateRequest,
    Fault,
    Health,
    Priority,
    Result,
    Span,
    Status,
    TaskStatus,
    Validation,
)
from drkernel.waits import Slow, slowest

__all__ = [
    "DEFAULT_URL",
    "THRESHOLDS",
    "AsyncClient",
    "BatchItem",
    "BatchResult",
    "BatchState",
    "Cancellation",
    "Client",
    "ClientOptions",
    "Conflict",
    "CoverageReward",
    "DeadlineExceeded",
    "DrkernelError",
    "EvaluateRequest",
    "FastP",
    "Fault",
    "Health",
    "NoVerdict",
    "NotFound",
    "Priority",
    "ProtocolError",
    "QueueFull",
    "RequestError",
    "Result",
    "RetryPolicy",
    "ServerError",
    "ServerUnreachable",
    "Slow",
    "Span",
    "Status",
    "TaskStatus",
    "Unauthorized",
    "Validation",
    "ValidationError",
    "__version__",
    "calculate_reward_like_kernel",
    "calculate_reward_speedup",
    "calculate_reward_weighted",
    "extract_code",
    "fast_p",
    "fast_p_best_so_far",
    "fast_p_per_turn",
    "slowest",
]
