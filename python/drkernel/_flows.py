# SPDX-License-Identifier: Apache-2.0
"""What a client does about single tasks, as flows: decisions without I/O."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote
from uuid import uuid4

from drkernel import waits
from drkernel._effects import Broken, Flow, Reply, Request, Sleep, send
from drkernel._json import decode, encode
from drkernel.errors import DeadlineExceeded, DrkernelError, NotFound, NoVerdict, QueueFull
from drkernel.retry import RetryPolicy, Tally, next_step
from drkernel.types import (
    BatchItem,
    Cancellation,
    EvaluateRequest,
    Health,
    Result,
    Status,
    TaskStatus,
    Validation,
    candidate_problem,
    refused,
    unjudged,
)

logger = logging.getLogger("drkernel")

# The server ends a task at the deadline that it was told and says in which stage: its word, which
# is better than a mere time-out here, is given this long to arrive.
DEADLINE_GRACE_S = 2.0
_LOOK_TIMEOUT_S = 5.0
_ANSWER_S = 15.0  # beyond the `wait` that was asked for
_FOREVER = float("inf")
_MAX_WAIT_S = 300.0  # the server's
# A server takes no longer deadline; a call that has more time than that tells none.
_MAX_TOLD_S = 86_400.0


@dataclass(frozen=True)
class Context:
    """What flows need of their surroundings."""

    policy: RetryPolicy
    clock: Callable[[], float]  # s, monotonic
    chance: Callable[[], float]  # 0 to 1
    overdue_s: float  # after that a wait is logged, and again after each such time
    deadline_s: float | None  # of calls that name none

    @property
    def hold_s(self) -> float:
        """How long an answer is waited for on one connection; a lost one is noticed after that."""
        return min(max(self.overdue_s, 0.1), _MAX_WAIT_S)

    def deadline(self, after_s: float | None) -> Deadline:
        limit_s = self.deadline_s if after_s is None else after_s
        return Deadline(self.clock, _FOREVER if limit_s is None else self.clock() + limit_s)


@dataclass(frozen=True)
class Deadline:
    """The moment at which a call gives up."""

    clock: Callable[[], float]
    at: float

    @property
    def left_s(self) -> float:
        return self.at - self.clock()

    @property
    def told_s(self) -> float | None:
        """What a server is told: seconds from now."""
        return round(max(self.left_s, 0.001), 3) if self.left_s <= _MAX_TOLD_S else None

    def no_later_than(self, after_s: float | None) -> Deadline:
        return self if after_s is None else replace(self, at=min(self.at, self.clock() + after_s))


def new_task_id() -> str:
    return f"task-{uuid4().hex}"


def with_id(request: EvaluateRequest) -> EvaluateRequest:
    return request if request.task_id else replace(request, task_id=new_task_id())


def with_deadline(request: EvaluateRequest, deadline: Deadline) -> EvaluateRequest:
    """One deadline for both sides: the server is told what is left of the client's."""
    told_s = deadline.told_s
    if told_s is None or (request.deadline_s is not None and request.deadline_s < told_s):
        return request
    return replace(request, deadline_s=told_s)


def retried(
    ctx: Context,
    request: Request,
    deadline: Deadline,
    *,
    what: str,
    is_alive: Callable[[], Flow[bool]] | None = None,
) -> Flow[Reply]:
    """Sends until there is a success, within the deadline.

    With `is_alive`, of an evaluation, silence is no failure as long as the server is alive.
    """
    tally = Tally()
    while True:
        if deadline.left_s <= 0:
            raise DeadlineExceeded(f"{what}: no answer within the time given")
        limit_s = min(request.timeout_s, deadline.left_s + DEADLINE_GRACE_S)
        outcome = yield from send(replace(request, timeout_s=limit_s))
        if isinstance(outcome, Reply) and 200 <= outcome.status < 300:
            return outcome
        is_silent = isinstance(outcome, Broken) and outcome.is_silent
        if is_silent and is_alive and deadline.left_s > 0 and (yield from is_alive()):
            tally = Tally()
        else:
            tally = yield from pause(
                ctx, tally, outcome, deadline, what=what, is_evaluation=is_alive is not None
            )


def pause(
    ctx: Context,
    tally: Tally,
    outcome: Reply | Broken,
    deadline: Deadline,
    *,
    what: str,
    is_evaluation: bool = False,
) -> Flow[Tally]:
    """Sleeps before the next try; raises when there is to be none."""
    step = next_step(
        ctx.policy, tally, outcome, what=what, chance=ctx.chance(), is_evaluation=is_evaluation
    )
    if step.delay_s >= deadline.left_s:
        raise _out_of_time(step.cause, what)
    level = logging.WARNING if isinstance(step.cause, QueueFull) else logging.INFO
    logger.log(level, "%s; next try in %.1f s", step.cause, step.delay_s)
    yield Sleep(step.delay_s)
    return step.tally


def _out_of_time(cause: DrkernelError, what: str) -> DrkernelError:
    if isinstance(cause, QueueFull):
        return cause
    error = DeadlineExceeded(f"{what}: no time left for another try after: {cause}")
    error.__cause__ = cause
    return error


def evaluate(ctx: Context, request: EvaluateRequest, deadline: Deadline) -> Flow[Result]:
    """The answer of one held POST, posted again as often as the connection falls silent."""
    request = with_id(request)
    deadline = deadline.no_later_than(request.deadline_s)
    if request.force_refresh:
        # A repeated POST with force_refresh would start over: it is handed in once, then joined.
        yield from submit(ctx, with_deadline(request, deadline), deadline)
        request = replace(request, force_refresh=None)
    task_id, started = str(request.task_id), ctx.clock()

    def is_alive() -> Flow[bool]:
        return log_waits(ctx, [task_id], ctx.clock() - started, deadline)

    post = _post_task(with_deadline(request, deadline), timeout_s=ctx.hold_s)
    reply = yield from retried(ctx, post, deadline, what=f"evaluate {task_id}", is_alive=is_alive)
    return Result.from_json(decode(reply.body))


def judged(
    ctx: Context, index: int, request: EvaluateRequest, deadline: Deadline
) -> Flow[BatchItem]:
    """As `evaluate`, for one of many: what concerns this candidate alone is a result."""
    request = with_id(request)
    task_id = str(request.task_id)
    problem = candidate_problem(request.kernel_code)
    if problem is not None:
        return BatchItem(index, refused(task_id, problem))
    try:
        return BatchItem(index, (yield from evaluate(ctx, request, deadline)))
    except NoVerdict as error:
        logger.error("%s: without a verdict: %s", task_id, error)
        return BatchItem(index, unjudged(task_id, str(error)))


def submit(ctx: Context, request: EvaluateRequest, deadline: Deadline) -> Flow[TaskStatus]:
    """The deadline is the call's; how long the task may take is for the request to say."""
    request = with_id(request)
    post = _post_task(request, params={"async": "1"})
    reply = yield from retried(ctx, post, deadline, what=f"submit {request.task_id}")
    return TaskStatus.from_json(decode(reply.body))


def _post_task(
    request: EvaluateRequest, *, params: Mapping[str, str] | None = None, timeout_s: float = 30.0
) -> Request:
    body = encode(request.to_json())
    return Request("POST", "/evaluate", params or {}, body, timeout_s=timeout_s)


def log_waits(
    ctx: Context, task_ids: Sequence[str], waited_s: float, deadline: Deadline
) -> Flow[bool]:
    """Says where tasks are, in the log; True if the server answered."""
    level = logging.WARNING if waited_s >= ctx.overdue_s else logging.DEBUG
    for task_id in task_ids:
        limit_s = max(0.0, min(_LOOK_TIMEOUT_S, deadline.left_s))
        outcome = yield from send(_get(f"/status/{path_part(task_id)}", timeout_s=limit_s))
        if isinstance(outcome, Broken):
            logger.log(level, "waiting for %s since %.0f s: %s", task_id, waited_s, outcome.what)
            return False
        if outcome.status == 200:
            where = waits.describe(TaskStatus.from_json(decode(outcome.body)))
        else:
            where = f"its status is not to be had ({outcome.status})"
        logger.log(level, "waiting for %s since %.0f s: %s", task_id, waited_s, where)
    return True


def status(
    ctx: Context, task_id: str, deadline: Deadline, *, wait_s: float = 0, since: Status | None
) -> Flow[TaskStatus]:
    params = wait_params(wait_s)
    if since is not None:
        params["since"] = since.value
    get = _get(f"/status/{path_part(task_id)}", params, wait_s + _ANSWER_S)
    reply = yield from retried(ctx, get, deadline, what=f"status {task_id}")
    return TaskStatus.from_json(decode(reply.body))


def results(ctx: Context, task_id: str, deadline: Deadline, *, wait_s: float = 0) -> Flow[Result]:
    get = _get(f"/results/{path_part(task_id)}", wait_params(wait_s), wait_s + _ANSWER_S)
    reply = yield from retried(ctx, get, deadline, what=f"results {task_id}")
    return Result.from_json(decode(reply.body))


def wait(ctx: Context, task_id: str, deadline: Deadline) -> Flow[Result]:
    """Long-polls until the task is final."""
    started = reported = ctx.clock()
    known: Status | None = None
    while known is None or not known.is_final:
        wait_s = 0 if known is None else max(0.0, min(ctx.hold_s, deadline.left_s))
        state = yield from status(ctx, task_id, deadline, wait_s=wait_s, since=known)
        known, now = state.status, ctx.clock()
        where = waits.describe(state)
        if not known.is_final and now >= deadline.at:
            raise DeadlineExceeded(f"wait {task_id}: {where} after {now - started:.1f} s")
        if not known.is_final and now - reported >= ctx.overdue_s:
            reported = now
            logger.warning("waiting for %s since %.0f s: %s", task_id, now - started, where)
    return (yield from results(ctx, task_id, deadline))


def cancel(ctx: Context, task_id: str, deadline: Deadline) -> Flow[Cancellation]:
    delete = Request("DELETE", f"/tasks/{path_part(task_id)}")
    try:
        reply = yield from retried(ctx, delete, deadline, what=f"cancel {task_id}")
    except NotFound:
        # The answer to an earlier try may have been lost: then it is cancelled by now.
        state = yield from status(ctx, task_id, deadline, since=None)
        if state.status is not Status.cancelled:
            raise
        return Cancellation(task_id, state.status, state.error_message)
    return Cancellation.from_json(decode(reply.body))


def validate(ctx: Context, request: EvaluateRequest, deadline: Deadline) -> Flow[Validation]:
    request = with_id(request)
    post = Request("POST", "/debug/validate", body=encode(request.to_json()))
    reply = yield from retried(ctx, post, deadline, what=f"validate {request.task_id}")
    return Validation.from_json(decode(reply.body))


def health(ctx: Context, deadline: Deadline) -> Flow[Health]:
    reply = yield from retried(ctx, _get("/health"), deadline, what="health")
    return Health.from_json(decode(reply.body))


def _get(path: str, params: Mapping[str, str] | None = None, timeout_s: float = 30.0) -> Request:
    return Request("GET", path, params or {}, timeout_s=timeout_s)


def wait_params(wait_s: float) -> dict[str, str]:
    return {"wait": f"{min(wait_s, _MAX_WAIT_S):.3f}"} if wait_s > 0 else {}


def path_part(task_id: str) -> str:
    """Any id as one part of a path; "." and ".." would be steps otherwise."""
    quoted = quote(task_id, safe="")
    return quoted.replace(".", "%2E") if not task_id.strip(".") else quoted
