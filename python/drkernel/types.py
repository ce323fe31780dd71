# SPDX-License-Identifier: Apache-2.0
"""What is sent and what comes back; field names, units and words are those of the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum

from drkernel._json import Fields, JsonObject, JsonValue

# Of a candidate's code after stripping, as the server counts them.
MIN_CODE_CHARS = 10
MAX_CODE_CHARS = 100_000


class Status(StrEnum):
    """Where a task stands; the last four are final."""

    pending = "pending"
    processing = "processing"
    completed = "completed"
    failed = "failed"
    timeout = "timeout"
    cancelled = "cancelled"

    @property
    def is_final(self) -> bool:
        return self not in (Status.pending, Status.processing)


class Fault(StrEnum):
    """Whose fault it is that a candidate was not accepted."""

    candidate = "candidate"
    task = "task"
    infra = "infra"


class Priority(StrEnum):
    low = "low"
    normal = "normal"
    high = "high"


@dataclass(frozen=True, kw_only=True)
class EvaluateRequest:
    """One candidate to judge; None leaves a field out, and the server's default applies.

    `kernel_code` defines `entry_point` + "New", `reference_code` defines `entry_point`. `timeout`
    bounds the candidate's running time in seconds, `deadline_s` the whole, time in the queue
    included. Without a `task_id` the client makes one up.
    """

    kernel_code: str
    reference_code: str | None = None
    task_id: str | None = None
    workflow: str | None = None
    toolkit: str | None = None
    backend_adapter: str | None = None
    backend: str | None = None
    entry_point: str | None = None
    reference_backend: str | None = None
    num_correct_trials: int | None = None
    num_perf_trials: int | None = None
    num_warmup: int | None = None
    protocol: str | None = None
    timeout: float | None = None
    deadline_s: float | None = None
    priority: Priority | None = None
    device_preference: str | None = None
    force_refresh: bool | None = None
    uuid: str | None = None
    use_reference_cache: bool | None = None
    is_valid: bool | None = None
    verbose_errors: bool | None = None
    enable_profiling: bool | None = None
    enable_triton_detection: bool | None = None
    measure_performance: bool | None = None
    run_correctness: bool | None = None
    run_triton_detection: bool | None = None
    run_performance: bool | None = None
    detect_decoy_kernel: bool | None = None
    cases_code: str | None = None
    cases: Sequence[Mapping[str, object]] | None = None
    resources: Mapping[str, int] | None = None

    def to_json(self) -> dict[str, object]:
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def candidate_problem(kernel_code: str) -> str | None:
    """Why the server would not even look at this candidate's code; None if it would."""
    try:
        kernel_code.encode()
    except UnicodeEncodeError as error:
        return f"kernel_code: character {error.start} is not valid Unicode"
    if "\0" in kernel_code:
        return (
            f"kernel_code: NUL in line {kernel_code[:kernel_code.index(chr(0))].count(chr(10)) + 1}"
        )
    size = len(kernel_code.strip(" \t\r\n\f\v"))
    if MIN_CODE_CHARS <= size <= MAX_CODE_CHARS:
        return None
    return (
        f"kernel_code: {size} characters of code; {MIN_CODE_CHARS} to {MAX_CODE_CHARS} are allowed"
    )


@dataclass(frozen=True)
class Span:
    """One stage of a task; times from the submission on."""

    name: str
    start_ms: float
    duration_ms: float

    @classmethod
    def from_json(cls, value: JsonValue) -> Span:
        of = Fields(value, "timeline")
        return cls(of.text("name") or "", of.number("start_ms") or 0, of.number("duration_ms") or 0)


@dataclass(frozen=True)
class Result:
    """What became of one task; `raw` is the answer as it came, with fields unknown here.

    Runtimes are milliseconds and None when they were not measured; `speedup` is reference time /
    candidate time, and 0 unless the candidate is right and was timed. `decoy_kernel` and
    `correctness` are None when that could not be determined.
    """

    task_id: str
    status: Status
    compiled: bool
    correctness: bool | None
    decoy_kernel: bool | None
    reference_runtime: float | None
    kernel_runtime: float | None
    speedup: float
    metadata: JsonObject
    error_message: str | None
    error_code: str | None
    fault: Fault | None
    submitted_at: str | None
    completed_at: str | None
    processing_time: float | None  # s
    timeline: tuple[Span, ...]
    cached: bool
    raw: JsonObject = field(repr=False, compare=False)

    @property
    def has_verdict(self) -> bool:
        """False when it is final for a reason that is not the candidate's, or not final yet."""
        if self.fault in (Fault.infra, Fault.task) or not self.status.is_final:
            return False
        return self.status is not Status.cancelled

    @property
    def is_accepted(self) -> bool:
        """Right, by its own kernels as far as could be seen."""
        right = self.correctness is True and self.decoy_kernel is not True
        return right and self.status is Status.completed and self.has_verdict

    @classmethod
    def from_json(cls, value: JsonValue) -> Result:
        of = Fields(value, "result")
        return cls(
            task_id=of.required_text("task_id"),
            status=of.required_choice("status", Status),
            compiled=of.flag("compiled") or False,
            correctness=of.flag("correctness"),
            decoy_kernel=of.flag("decoy_kernel"),
            reference_runtime=_measured_ms(of.number("reference_runtime")),
            kernel_runtime=_measured_ms(of.number("kernel_runtime")),
            speedup=of.number("speedup") or 0.0,
            metadata=of.object("metadata"),
            error_message=of.text("error_message"),
            error_code=of.text("error_code"),
            fault=of.choice("fault", Fault),
            submitted_at=of.text("submitted_at"),
            completed_at=of.text("completed_at"),
            processing_time=of.number("processing_time"),
            timeline=tuple(Span.from_json(span) for span in of.list("timeline")),
            cached=of.flag("cached") or False,
            raw=of.raw,
        )


def _measured_ms(runtime: float | None) -> float | None:
    return None if runtime is None or runtime < 0 else runtime


def unjudged(task_id: str, why: str) -> Result:
    """The result of a task that this client got no verdict for."""
    return _made_here(task_id, why, error_code="SYSTEM_ERROR", fault=Fault.infra)


def refused(task_id: str, problem: str) -> Result:
    """The result of a candidate with a `candidate_problem`, which is not sent."""
    return _made_here(task_id, problem, error_code="VALIDATION_ERROR", fault=Fault.candidate)


def _made_here(task_id: str, why: str, *, error_code: str, fault: Fault) -> Result:
    return Result.from_json(
        {
            "task_id": task_id,
            "status": Status.failed.value,
            "compiled": False,
            "correctness": False,
            "decoy_kernel": None,
            "reference_runtime": -1,
            "kernel_runtime": -1,
            "speedup": 0,
            "metadata": {},
            "error_message": why,
            "error_code": error_code,
            "fault": fault.value,
        }
    )


@dataclass(frozen=True)
class TaskStatus:
    """Where a task stands; `raw` is the answer as it came."""

    task_id: str
    status: Status
    progress: float | None  # 0 to 1
    queue_position: int | None  # 1 is next
    queue_ahead: int | None
    why_waiting: str | None
    assigned_device: str | None
    stage: str | None
    detail: str | None
    attempts: int | None
    priority: Priority | None
    client: str | None
    workflow: str | None
    submitted_at: str | None
    started_at: str | None
    completed_at: str | None
    fault: Fault | None
    error_code: str | None
    error_message: str | None
    raw: JsonObject = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, value: JsonValue) -> TaskStatus:
        of = Fields(value, "status")
        return cls(
            task_id=of.required_text("task_id"),
            status=of.required_choice("status", Status),
            progress=of.number("progress"),
            queue_position=of.integer("queue_position"),
            queue_ahead=of.integer("queue_ahead"),
            why_waiting=of.text("why_waiting"),
            assigned_device=of.text("assigned_device"),
            stage=of.text("stage"),
            detail=of.text("detail"),
            attempts=of.integer("attempts"),
            priority=of.choice("priority", Priority),
            client=of.text("client"),
            workflow=of.text("workflow"),
            submitted_at=of.text("submitted_at"),
            started_at=of.text("started_at"),
            completed_at=of.text("completed_at"),
            fault=of.choice("fault", Fault),
            error_code=of.text("error_code"),
            error_message=of.text("error_message"),
            raw=of.raw,
        )


@dataclass(frozen=True)
class BatchItem:
    """One result of a batch, with its place among the requests, from 0."""

    index: int
    result: Result


@dataclass(frozen=True)
class BatchResult:
    """All results of a batch, in the order of the requests."""

    batch_id: str
    results: tuple[Result, ...]

    @property
    def completed_tasks(self) -> int:
        return sum(result.status is Status.completed for result in self.results)

    @property
    def no_verdict_tasks(self) -> int:
        """Those that deserve no reward, neither good nor bad."""
        return sum(not result.has_verdict for result in self.results)


@dataclass(frozen=True)
class BatchState:
    """A batch as it stands: a Result for each task that is final, a TaskStatus for each other."""

    batch_id: str
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    batch_status: Status
    submitted_at: str | None
    completed_at: str | None
    entries: tuple[Result | TaskStatus, ...]
    raw: JsonObject = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, value: JsonValue) -> BatchState:
        of = Fields(value, "batch")
        return cls(
            batch_id=of.required_text("batch_id"),
            total_tasks=of.integer("total_tasks") or 0,
            completed_tasks=of.integer("completed_tasks") or 0,
            failed_tasks=of.integer("failed_tasks") or 0,
            batch_status=of.required_choice("batch_status", Status),
            submitted_at=of.text("submitted_at"),
            completed_at=of.text("completed_at"),
            entries=tuple(_entry(entry) for entry in of.list("results")),
            raw=of.raw,
        )


def _entry(value: JsonValue) -> Result | TaskStatus:
    status = Fields(value, "batch").required_choice("status", Status)
    return Result.from_json(value) if status.is_final else TaskStatus.from_json(value)


@dataclass(frozen=True)
class Cancellation:
    """What cancelling did."""

    task_id: str
    status: Status
    message: str | None

    @classmethod
    def from_json(cls, value: JsonValue) -> Cancellation:
        of = Fields(value, "cancellation")
        return cls(
            of.required_text("task_id"), of.required_choice("status", Status), of.text("message")
        )


@dataclass(frozen=True)
class Validation:
    """Whether a request would be accepted, and why not."""

    valid: bool
    errors: tuple[JsonValue, ...]
    reference: JsonObject
    kernel: JsonObject
    cache: JsonObject
    raw: JsonObject = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, value: JsonValue) -> Validation:
        of = Fields(value, "validation")
        return cls(
            valid=of.flag("valid") or False,
            errors=tuple(of.list("errors")),
            reference=of.object("reference"),
            kernel=of.object("kernel"),
            cache=of.object("cache"),
            raw=of.raw,
        )


@dataclass(frozen=True)
class Health:
    """How the server is."""

    status: str
    active_tasks: int
    total_processed: int
    uptime: float  # s
    gpu_status: JsonObject
    queue_status: JsonObject
    memory_usage: JsonObject
    raw: JsonObject = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, value: JsonValue) -> Health:
        of = Fields(value, "health")
        return cls(
            status=of.required_text("status"),
            active_tasks=of.integer("active_tasks") or 0,
            total_processed=of.integer("total_processed") or 0,
            uptime=of.number("uptime") or 0.0,
            gpu_status=of.object("gpu_status"),
            queue_status=of.object("queue_status"),
            memory_usage=of.object("memory_usage"),
            raw=of.raw,
        )
