# SPDX-License-Identifier: Apache-2.0
"""What a client does about batches, as flows: splitting, streaming, taking up a broken stream."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from uuid import uuid4

from drkernel._effects import Broken, Emit, Flow, Opened, Reply, Request, open_stream, read
from drkernel._flows import (
    DEADLINE_GRACE_S,
    Context,
    Deadline,
    log_waits,
    path_part,
    pause,
    retried,
    wait_params,
    with_deadline,
)
from drkernel._json import Fields, decode, encode
from drkernel._sse import EventParser, ServerEvent
from drkernel.errors import DeadlineExceeded, NoVerdict, ProtocolError
from drkernel.retry import Tally
from drkernel.types import (
    BatchItem,
    BatchResult,
    BatchState,
    EvaluateRequest,
    Result,
    candidate_problem,
    refused,
    unjudged,
)

logger = logging.getLogger("drkernel")

# The server's limits; bodies are kept to half of what it takes.
MAX_TASKS = 4096
MAX_BODY_BYTES = 32 << 20
MAX_ID_CHARS = 100
# It sends a comment every 15 s: three of them missing is a dead connection.
SILENCE_S = 45.0
# So many of the oldest unfinished tasks are named when a batch is overdue.
NAMED_WAITS = 5


@dataclass(frozen=True)
class Task:
    """One request of a batch, as it is sent; `index` is its place among all requests."""

    index: int
    task_id: str
    body: bytes


@dataclass(frozen=True)
class Part:
    """As much of a batch as one POST takes."""

    batch_id: str
    tasks: tuple[Task, ...]

    @property
    def body(self) -> bytes:
        head = encode({"batch_id": self.batch_id})[:-1]
        return head + b', "tasks": [' + b", ".join(task.body for task in self.tasks) + b"]}"


@dataclass(frozen=True)
class Plan:
    """The same requests and id make the same plan: posting it again takes a batch up."""

    batch_id: str
    parts: tuple[Part, ...]
    refused: tuple[BatchItem, ...]  # not sent: the whole batch would be refused for them


def plan_batch(
    requests: Sequence[EvaluateRequest],
    batch_id: str | None,
    deadline: Deadline | None,
    *,
    max_tasks: int = MAX_TASKS,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> Plan:
    """Without a deadline, only those that the requests have are told."""
    name = batch_id or f"batch-{uuid4().hex}"
    tasks, refusals = [], []
    for index, request in enumerate(requests):
        task_id = request.task_id or _task_id(name, index)
        problem = candidate_problem(request.kernel_code)
        if problem is not None:
            refusals.append(BatchItem(index, refused(task_id, problem)))
        else:
            sent = replace(request, task_id=task_id)
            sent = with_deadline(sent, deadline) if deadline else sent
            tasks.append(Task(index, task_id, encode(sent.to_json())))
    groups = list(_split(tasks, max_tasks, max_body_bytes))
    ids = [name] if len(groups) == 1 else [f"{name}.{i}" for i in range(len(groups))]
    parts = tuple(Part(part_id, group) for part_id, group in zip(ids, groups, strict=True))
    return Plan(name, parts, tuple(refusals))


def _task_id(batch_id: str, index: int) -> str:
    name = f"{batch_id}-{index}"
    if len(name) <= MAX_ID_CHARS:
        return name
    return f"{hashlib.sha256(batch_id.encode()).hexdigest()[:32]}-{index}"


def _split(
    tasks: Sequence[Task], max_tasks: int, max_body_bytes: int
) -> Iterator[tuple[Task, ...]]:
    group: list[Task] = []
    size = 0
    for task in tasks:
        if group and (len(group) == max_tasks or size + len(task.body) > max_body_bytes):
            yield tuple(group)
            group, size = [], 0
        group.append(task)
        size += len(task.body)
    if group:
        yield tuple(group)


def post_batch(ctx: Context, part: Part, deadline: Deadline) -> Flow[BatchState]:
    post = Request("POST", "/evaluate/batch", {"async": "1"}, part.body, timeout_s=60)
    reply = yield from retried(ctx, post, deadline, what=f"batch {part.batch_id}")
    return BatchState.from_json(decode(reply.body))


def get_batch(
    ctx: Context, batch_id: str, deadline: Deadline, *, wait_s: float = 0
) -> Flow[BatchState]:
    get = Request("GET", _batch_path(batch_id), wait_params(wait_s), timeout_s=wait_s + 30)
    reply = yield from retried(ctx, get, deadline, what=f"batch {batch_id}")
    return BatchState.from_json(decode(reply.body))


def stream_part(ctx: Context, part: Part, deadline: Deadline) -> Flow[None]:
    """Emits a result for every task of a part, whatever happens.

    What has no verdict when this gives up is emitted as a result without one.
    """
    reader = PartReader(ctx, part, deadline)
    try:
        yield from reader.run()
    except NoVerdict as error:
        missing = reader.missing()
        logger.error("batch %s: %d without a verdict: %s", part.batch_id, len(missing), error)
        for task in missing:
            yield Emit(BatchItem(task.index, unjudged(task.task_id, str(error))))


def stream_known(ctx: Context, batch_id: str, deadline: Deadline) -> Flow[None]:
    """Emits the results of a batch that the server has; raises where `stream_part` would not."""
    yield from PartReader(ctx, Part(batch_id, ()), deadline, is_posted=True).run()


class PartReader:
    """Reads one part's stream to its end, over as many connections as that takes."""

    def __init__(
        self, ctx: Context, part: Part, deadline: Deadline, *, is_posted: bool = False
    ) -> None:
        self._ctx, self._part, self._deadline = ctx, part, deadline
        self._is_posted = is_posted  # then it is attached to
        self._is_known_only = is_posted  # and could not be posted again
        self._seen: set[int] = set()  # places within the part
        self._is_done = False
        self._limit_s = SILENCE_S  # of the connection
        self._progressed = self._reported = self._started = ctx.clock()

    def missing(self) -> list[Task]:
        return [task for place, task in enumerate(self._part.tasks) if place not in self._seen]

    def run(self) -> Flow[None]:
        tally = Tally()
        while not self._is_done:
            if self._deadline.left_s <= 0:
                raise DeadlineExceeded(f"{self._what}: unfinished when the time was up")
            seen_before = len(self._seen)
            outcome = yield from self._connect()
            if len(self._seen) > seen_before:
                tally = Tally()
            if outcome is not None and not self._is_done:
                tally = yield from pause(self._ctx, tally, outcome, self._deadline, what=self._what)

    @property
    def _what(self) -> str:
        return f"batch {self._part.batch_id}"

    def _connect(self) -> Flow[Reply | Broken | None]:
        """One connection; what ended it, or None when the next one need not wait."""
        outcome = yield from open_stream(self._request())
        if isinstance(outcome, Opened):
            self._is_posted = True
            return (yield from self._read_events())
        if isinstance(outcome, Broken):
            return outcome
        if outcome.status == 404 and self._is_posted and not self._is_known_only:
            self._is_posted = False  # the server has forgotten it: hand it in again
            return Broken("the server does not know the batch any more")
        if outcome.status == 200:  # the whole batch at once, from a server that does not stream
            yield from self._take_all(outcome)
            return Broken("the batch was not finished when the server answered")
        return outcome

    def _request(self) -> Request:
        limit_s = self._limit_s = min(SILENCE_S, self._deadline.left_s + DEADLINE_GRACE_S)
        accept = "text/event-stream"
        if self._is_posted:
            return Request(
                "GET", _batch_path(self._part.batch_id), accept=accept, timeout_s=limit_s
            )
        body = self._part.body
        return Request("POST", "/evaluate/batch", body=body, accept=accept, timeout_s=limit_s)

    def _read_events(self) -> Flow[Broken | None]:
        parser = EventParser()
        while not self._is_done:
            left_s = self._deadline.left_s
            # How long a connection may be silent is settled when it is opened: towards the
            # deadline a new one is needed.
            is_too_patient = left_s > 0 and self._limit_s > 2 * (left_s + DEADLINE_GRACE_S)
            if is_too_patient or left_s + DEADLINE_GRACE_S <= 0:
                return None
            outcome = yield from read()
            if isinstance(outcome, Broken):
                return outcome
            if not outcome.data:
                return Broken("the stream ended early")
            for event in parser.feed(outcome.data):
                yield from self._take_event(event)
            yield from self._report_overdue()
        return None

    def _take_event(self, event: ServerEvent) -> Flow[None]:
        if event.name == "result":
            of = Fields(decode(event.data), "event")
            place = of.integer("index")
            if place is None:
                raise ProtocolError(f"{self._what}: a result without its index")
            yield from self._take(place, Result.from_json(of.object("result")))
        elif event.name == "done":
            self._is_done = not self.missing()
            if not self._is_done:
                logger.warning("%s: done, and %d not told", self._what, len(self.missing()))

    def _take_all(self, reply: Reply) -> Flow[None]:
        state = BatchState.from_json(decode(reply.body))
        for place, entry in enumerate(state.entries):
            if isinstance(entry, Result):
                yield from self._take(place, entry)
        self._is_done = state.batch_status.is_final and not self.missing()

    def _take(self, place: int, result: Result) -> Flow[None]:
        if place in self._seen:
            return
        tasks = self._part.tasks
        if not 0 <= place < len(tasks) and not self._is_known_only:
            raise ProtocolError(f"{self._what}: a result for place {place} of {len(tasks)}")
        self._seen.add(place)
        self._progressed = self._ctx.clock()
        yield Emit(BatchItem(place if self._is_known_only else tasks[place].index, result))

    def _report_overdue(self) -> Flow[None]:
        now, overdue_s = self._ctx.clock(), self._ctx.overdue_s
        if min(now - self._progressed, now - self._reported) < overdue_s:
            return
        self._reported = now
        oldest = [task.task_id for task in islice(self.missing(), NAMED_WAITS)]
        logger.warning("%s: %d unfinished", self._what, len(self.missing()))
        yield from log_waits(self._ctx, oldest, now - self._started, self._deadline)


def collect(plan: Plan, items: Sequence[BatchItem]) -> BatchResult:
    ordered = sorted(items, key=lambda item: item.index)
    return BatchResult(plan.batch_id, tuple(item.result for item in ordered))


def _batch_path(batch_id: str) -> str:
    return f"/evaluate/batch/{path_part(batch_id)}"
