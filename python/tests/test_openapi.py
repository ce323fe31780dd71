# SPDX-License-Identifier: Apache-2.0
"""Every answer of the real server is what its own /openapi.json says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any
from uuid import uuid4

import httpx
import jsonschema
import pytest

from bundled import fresh, good, needs_gpu, sleeper
from drkernel import EvaluateRequest
from real_server import RealServer


@dataclass
class Checked:
    """Asks, and checks the answer against the document."""

    http: httpx.Client
    document: dict[str, Any]
    seen: set[tuple[str, str]] = field(default_factory=set)

    def ask(self, expected: int, method: str, path: str, **kwargs: Any) -> Any:
        answer = self.http.request(method, path, **kwargs)
        assert answer.status_code == expected, answer.text
        template, operation = self._operation(method.lower(), path)
        self.seen.add((method.lower(), template))
        responses = operation["responses"]
        assert str(expected) in responses, f"{method} {template} does not tell of {expected}"
        if answer.headers["content-type"].startswith("application/json"):
            self.check(answer.json(), responses[str(expected)], f"{method} {path}")
            return answer.json()
        return answer.text

    def check(self, body: Any, response: Any, what: str) -> None:
        schema = response.get("content", {}).get("application/json", {}).get("schema")
        if schema is None:
            return
        # References in the document are relative to its root.
        whole = {**schema, "components": self.document["components"]}
        errors = list(jsonschema.Draft202012Validator(whole).iter_errors(body))
        assert not errors, f"{what}: {errors[0].json_path}: {errors[0].message}"

    def _operation(self, method: str, path: str) -> tuple[str, Any]:
        for template, operations in self.document["paths"].items():
            pattern = re.sub(r"\{\w+\}", "[^/]+", template)
            is_exact = "{" not in template and template == path
            if method in operations and (is_exact or re.fullmatch(pattern, path)):
                return template, operations[method]
        raise AssertionError(f"{method} {path} is not in the document")


@pytest.fixture(scope="module")
def checked(server: RealServer) -> Iterator[Checked]:
    with httpx.Client(base_url=server.url, timeout=120, trust_env=False) as http:
        yield Checked(http, http.get("/openapi.json").json())


def body(request: EvaluateRequest) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(json.dumps(request.to_json()))
    return {"task_id": f"o-{uuid4().hex[:12]}", **values}


def test_the_document_is_openapi_with_sound_schemas(checked: Checked) -> None:
    assert checked.document["openapi"].startswith("3.1")
    for schema in checked.document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_what_the_client_sends_is_in_the_document(checked: Checked) -> None:
    schema = checked.document["components"]["schemas"]["EvaluateRequest"]
    names = {part.name for part in fields(EvaluateRequest)}
    assert names <= set(schema["properties"]), names - set(schema["properties"])
    jsonschema.Draft202012Validator(schema).validate(body(good()))


def test_evaluating(checked: Checked) -> None:
    request = body(fresh(good()))
    checked.ask(200, "POST", "/evaluate", json=request)
    checked.ask(409, "POST", "/evaluate", json={**request, "num_correct_trials": 2})
    checked.ask(400, "POST", "/evaluate", json={**request, "timeout": 1})
    checked.ask(400, "POST", "/evaluate", content=b"{")
    checked.ask(202, "POST", "/evaluate", params={"async": "1"}, json=body(fresh(good())))
    if not checked.ask(200, "GET", "/health")["gpu_status"]:
        checked.ask(503, "POST", "/evaluate", json=body(needs_gpu()))


def test_looking(checked: Checked) -> None:
    slow = body(sleeper(1))
    checked.ask(202, "POST", "/evaluate", params={"async": "1"}, json=slow)
    task_id = slow["task_id"]
    checked.ask(200, "GET", f"/status/{task_id}")
    checked.ask(404, "GET", f"/results/{task_id}")
    checked.ask(200, "GET", f"/status/{task_id}", params={"wait": "20", "since": "pending"})
    checked.ask(200, "GET", f"/results/{task_id}", params={"wait": "60"})
    checked.ask(200, "GET", f"/workflow/results/{task_id}")
    checked.ask(200, "GET", "/tasks", params={"limit": "5", "state": "completed"})
    checked.ask(400, "GET", "/tasks", params={"limit": "none"})
    for path in ("/status/unknown", "/results/unknown", "/workflow/results/unknown"):
        checked.ask(404, "GET", path)


@pytest.mark.parametrize("path", ["/status/{}", "/results/{}", "/evaluate/batch/{}"])
def test_a_wait_that_is_no_number_is_a_400(checked: Checked, path: str) -> None:
    known = body(good())
    batch_id = f"ob-{uuid4().hex[:12]}"
    checked.ask(200, "POST", "/evaluate/batch", json={"batch_id": batch_id, "tasks": [known]})
    name = batch_id if "batch" in path else known["task_id"]
    checked.ask(400, "GET", path.format(name), params={"wait": "long"})


def test_cancelling(checked: Checked) -> None:
    request = body(sleeper(100))
    task_id = request["task_id"]
    checked.ask(202, "POST", "/evaluate", params={"async": "1"}, json=request)
    checked.ask(200, "DELETE", f"/tasks/{task_id}")
    checked.ask(404, "DELETE", f"/tasks/{task_id}")
    checked.ask(200, "GET", f"/status/{task_id}")
    checked.ask(200, "GET", f"/results/{task_id}")


def test_batches(checked: Checked) -> None:
    batch_id = f"ob-{uuid4().hex[:12]}"
    request = {"batch_id": batch_id, "tasks": [body(sleeper(2)), body(fresh(good()))]}
    checked.ask(202, "POST", "/evaluate/batch", params={"async": "1"}, json=request)
    checked.ask(200, "GET", f"/evaluate/batch/{batch_id}")
    checked.ask(200, "GET", f"/evaluate/batch/{batch_id}", params={"wait": "0.1"})
    whole = checked.ask(200, "POST", "/evaluate/batch", json=request)
    result = {"$ref": "#/components/schemas/Result"}
    for one in whole["results"]:
        checked.check(one, {"content": {"application/json": {"schema": result}}}, "a result")
    checked.ask(404, "GET", "/evaluate/batch/unknown")
    checked.ask(400, "POST", "/evaluate/batch", json={"batch_id": "x", "tasks": []})
    checked.ask(409, "POST", "/evaluate/batch", json={**request, "tasks": request["tasks"][:1]})


def test_workflows(checked: Checked) -> None:
    payload = body(fresh(good()))
    request = {"workflow": "kernelbench", "payload": payload, "force_refresh": False}
    checked.ask(200, "POST", "/workflow/submit", json=request)
    checked.ask(400, "POST", "/workflow/submit", json={"workflow": "kernelbench"})


def test_validating(checked: Checked) -> None:
    checked.ask(200, "POST", "/debug/validate", json=body(good()))
    checked.ask(200, "POST", "/debug/validate", json={"kernel_code": 1})
    checked.ask(400, "POST", "/debug/validate", content=b"no JSON")


def test_the_server_itself(checked: Checked) -> None:
    for path in ("/", "/openapi.json", "/health", "/metrics", "/queue/status", "/workers/status"):
        checked.ask(200, "GET", path)
    for name in ("problematic-codes", "retry-queue", "worker-health"):
        checked.ask(200, "GET", f"/monitoring/{name}")
    text = checked.ask(200, "GET", "/metrics/prometheus")
    assert "# TYPE drk_" in text
    asked = checked.ask(200, "GET", "/metrics", headers={"Accept": "text/plain"})
    assert "# TYPE drk_" in asked
    checked.ask(404, "POST", f"/monitoring/clear-error-history/{'0' * 64}")


def test_workers_elsewhere(checked: Checked) -> None:
    host, worker = f"host-{uuid4().hex[:8]}", f"worker-{uuid4().hex[:8]}"
    node = checked.ask(200, "POST", "/node/allocate", params={"hostname": host, "node_name": host})
    checked.ask(409, "POST", "/node/allocate", params={"hostname": "other", "node_name": host})
    checked.ask(400, "POST", "/node/allocate")
    here = {"worker_id": worker, "node_id": node["node_id"], "hostname": host}
    checked.ask(200, "POST", "/worker/register", params={**here, "device": "cuda:0"})
    other = {**here, "worker_id": f"{worker}-2", "device": "cuda:0"}
    checked.ask(409, "POST", "/worker/register", params=other)
    checked.ask(200, "GET", "/workers/status")
    for name in ("heartbeat", "evict_from_lb", "unregister"):
        checked.ask(200, "POST", f"/worker/{name}", params={"worker_id": worker})
        checked.ask(404, "POST", f"/worker/{name}", params={"worker_id": "unknown"})


def test_nothing_of_the_document_was_left_out(checked: Checked) -> None:
    """The last of this file: it needs all those before it."""
    told = {
        (method, path)
        for path, operations in checked.document["paths"].items()
        for method in operations
    }
    if len(checked.seen) < len(told) / 2:
        pytest.skip("the other tests of this file did not run")
    assert checked.seen == told
