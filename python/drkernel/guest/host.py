# SPDX-License-Identifier: Apache-2.0
"""The zygote's start: imports what every guest needs, then hands the process to the guest core.

Run as `python -I host.py SOCKET_FD CORE_PATH` by the worker, with one thread and no CUDA touched.
No tensor operation may run here: a thread pool that exists before the fork hangs every guest.
"""

import importlib.machinery
import importlib.util
import json
import os
import random  # noqa: F401  (the core seeds it)
import sys
import sysconfig
import time


class _Ready(BaseException):
    """Ends this script; its exception hook is the core's serve()."""


def _import_all() -> dict[str, str]:
    """Imports the slow parts once, before any fork, and returns their versions."""
    import numpy
    import torch
    import torch.nn.functional  # noqa: F401
    import triton
    import triton.experimental.gluon  # noqa: F401  (0.18 s at a first launch otherwise)
    import triton.language  # noqa: F401
    import triton.runtime.interpreter  # noqa: F401
    from triton.runtime.cache import triton_key

    triton_key()  # hashes Triton's own files, memoised: 0.4 s of every guest's first launch
    return {
        "drkernel": os.environ.get("DRK_VERSION", ""),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "triton": triton.__version__,
        "numpy": numpy.__version__,
    }


def _tune_without_clock() -> None:
    """Has autotuned kernels take the first config that their pruning leaves, in the interpreter.

    Triton would time them all by a driver's clock, and there is neither a driver nor a fastest one.
    """
    from triton import knobs
    from triton.runtime.autotuner import Autotuner

    if not knobs.runtime.interpret:
        return
    # All alike: of equals the tuner takes the first, and launches nothing to find out.
    Autotuner._bench = lambda *_, **__: [0.0, 0.0, 0.0]


def _readable_paths(core_path: str, cuda_home: str) -> list[str]:
    """What a guest must see of the file tree: the system's libraries, this Python, the toolkit."""
    paths = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"}
    paths |= {"/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/sys/devices/system/cpu"}
    paths |= {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(core_path)}
    paths |= {path for path in sys.path if os.path.isdir(path)}
    paths |= {os.path.dirname(os.path.realpath(sys.executable))}
    paths |= {cuda_home, os.path.realpath(cuda_home)} if cuda_home else set()
    paths = {path for path in paths if os.path.lexists(path)}
    # A folder brings what is below it along.
    return sorted(p for p in paths if not any(p.startswith(q + "/") for q in paths))


def _system_paths() -> list[str]:
    """Where Triton code lies that is no candidate's."""
    found = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")}
    found |= {path for path in sys.path if os.path.isdir(path)}
    return sorted(found)


def _load(loader):
    """Loads a module of ours without a trace in sys.modules."""
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _main() -> None:
    started = time.monotonic()
    socket_fd, core_path = int(sys.argv[1]), os.path.abspath(sys.argv[2])
    versions = _import_all()
    _tune_without_clock()
    core = _load(importlib.machinery.ExtensionFileLoader("_drk_guest", core_path))
    toolchain_path = os.path.join(os.path.dirname(core_path), "toolchain.py")
    toolchain = _load(importlib.machinery.SourceFileLoader("toolchain", toolchain_path))
    toolchain.install(core.build)
    inputs_path = os.path.join(os.path.dirname(core_path), "inputs.py")
    inputs = _load(importlib.machinery.SourceFileLoader("inputs", inputs_path))
    tools = toolchain.find_tools()
    hello = {
        "versions": versions,
        "readable": _readable_paths(core_path, tools["cuda_home"]),
        "toolchain": tools,
        "import_s": time.monotonic() - started,
    }
    core.prepare(socket_fd, json.dumps(hello), _system_paths(), inputs)
    # The interpreter calls this hook from C once this script's frames are gone, so a candidate that
    # walks its callers finds no frame of ours.
    sys.excepthook = core.serve


_main()
sys.argv[1:] = []
raise _Ready
