# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a client and its server, as exceptions."""


class DrkernelError(Exception):
    """Whatever this package raises on purpose."""


class ProtocolError(DrkernelError):
    """The answer is not what the interface promises."""


class RequestError(DrkernelError):
    """The server refused the request, and would refuse it again."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ValidationError(RequestError):
    """400: a field breaks a rule; the message names it."""


class Unauthorized(RequestError):
    """401: the server asks for a token, and this is none of its own."""


class NotFound(RequestError):
    """404: no such task or batch, or it is not finished yet."""


class Conflict(RequestError):
    """409: the id is taken by other content."""


class NoVerdict(DrkernelError):
    """Nothing was found out, for no fault of the candidate: no reward, and never a penalty.

    Raised as it is for 503; its subclasses say what else kept the answer away.
    """


class QueueFull(NoVerdict):
    """429, until the time was up."""


class ServerError(NoVerdict):
    """A 5xx other than 503, or 408, after retries."""


class ServerUnreachable(NoVerdict):
    """No answer, after retries: refused, reset, broken off."""


class DeadlineExceeded(NoVerdict):
    """The time that the caller gave was up first."""
