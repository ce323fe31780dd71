# SPDX-License-Identifier: Apache-2.0
"""Compilers for guests, which may not execute any: Triton's and torch's calls become requests.

Imported by host.py in the zygote, where programs may still be run: what a guest would ask them (versions,
folders) is asked here once. In a guest `_build` has the worker compile and hand over the product.
"""

from __future__ import annotations

import importlib.machinery
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from types import ModuleType

import triton.backends.nvidia.compiler
import triton.backends.nvidia.driver
import triton.runtime.build
from triton import knobs

_Build = Callable[[str, list[str], dict[str, bytes]], "tuple[int, str, bytes | None]"]
_EXTENSIONS = "torch.utils.cpp_extension"
_SCRATCH = "/tmp"  # of guests: the one folder that they can write to
_NO_TOOL = 127  # the worker's exit code for a compiler that is not there, as a shell's
_HOST_SOURCES = (".cpp", ".cc", ".cxx", ".c")
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".cuh", ".inc", ".inl", ".ipp", ".tcc")


class ToolMissing(RuntimeError):
    """This machine lacks what the code needs: no fault of the code's."""


_build: _Build
_versions: dict[str, bytes] = {}  # of each ptxas, by path: what --version prints


def find_tools() -> dict[str, str]:
    """Where the compilers are, as guest::Toolchain has it: empty where there is none."""
    return {
        "ptxas": _triton_tool("ptxas"),
        "ptxas_blackwell": _triton_tool("ptxas_blackwell"),
        "cc": shutil.which("gcc") or shutil.which("cc") or "",
        "cxx": shutil.which("g++") or shutil.which("c++") or "",
        "cuda_home": _find_cuda_home(),
    }


def install(build: _Build) -> None:
    """Makes `build` what Triton, and torch's extensions when they are imported, compile with."""
    global _build
    _build = build
    knobs.build.impl = _build_c_module
    triton.backends.nvidia.compiler.subprocess = _Subprocess()
    # torch.compile would name another ptxas, whose code Triton's own, which runs here, may not know.
    os.environ.setdefault("TRITON_PTXAS_PATH", _triton_tool("ptxas"))
    for tool in ("ptxas", "ptxas_blackwell"):
        if path := _triton_tool(tool):
            _versions[path] = subprocess.check_output([path, "--version"])
    triton.runtime.build.platform_key()  # memoised there: it asks the program `file`
    try:
        triton.backends.nvidia.driver.libcuda_dirs()  # memoised there: it asks ldconfig
    except AssertionError:  # no driver here, so nothing will be linked with it
        pass
    if cuda_home := _find_cuda_home():
        os.environ["CUDA_HOME"] = cuda_home
    sys.meta_path.insert(0, _PatchingFinder())


# --- Triton ---


def _triton_tool(name: str) -> str:
    try:
        return os.path.realpath(getattr(knobs.nvidia, name).path)
    except RuntimeError:  # Triton's wheel has none
        return ""


def _build_c_module(
    name: str,
    source: str,
    folder: str,
    library_dirs: list[str],
    include_dirs: list[str],
    libraries: list[str],
) -> str:
    """As triton.runtime.build's own: the path of the shared library that `source` becomes."""
    file = os.path.basename(source)
    include_dirs = [*include_dirs, sysconfig.get_paths("posix_prefix")["include"]]
    arguments = [file, "-O3", "-shared", "-fPIC", "-Wno-psabi"]
    arguments += [
        f"-l:{name}" if ".so" in name or ".a" in name else f"-l{name}" for name in libraries
    ]
    arguments += [f"-L{path}" for path in library_dirs]
    arguments += [f"-I{path}" for path in include_dirs if path and path != folder]
    code, log, product = _build("c_module", arguments, {file: _read(source)})
    if product is None:
        raise RuntimeError(f"Error building {name}: exit code {code}: {log}")
    path = os.path.join(folder, name + sysconfig.get_config_var("EXT_SUFFIX"))
    _write(path, product)
    return path


class _Subprocess:
    """What Triton's NVIDIA backend sees of the module subprocess: its calls of ptxas are requests."""

    def __getattr__(self, name: str) -> object:
        return getattr(subprocess, name)

    def check_output(self, command: list[str], **options: object) -> bytes:
        version = _versions.get(os.path.realpath(command[0]))
        if version is not None and command[1:] == ["--version"]:
            return version
        return subprocess.check_output(command, **options)

    def run(self, command: list[str], **options: object) -> subprocess.CompletedProcess:
        tool = os.path.basename(command[0])
        if tool not in ("ptxas", "ptxas-blackwell") or "-o" not in command:
            return subprocess.run(command, **options)
        at = command.index("-o")
        output, arguments = command[at + 1], command[1:at] + command[at + 2 :]
        files = {}
        for i, argument in enumerate(arguments):
            if argument.endswith(".ptx") and os.path.isfile(argument):
                # Under one name, whatever the temporary file's: equal code is compiled once.
                arguments[i] = "kernel.ptx"
                files["kernel.ptx"] = _read(argument)
        code, log, product = _build("ptxas", [tool, *arguments], files)
        if stderr := options.get("stderr"):
            with open(stderr.name, "w") as stream:  # Triton opens its own for reading
                stream.write(log)
        if product is None:
            raise subprocess.CalledProcessError(code, command)
        _write(output, product)
        return subprocess.CompletedProcess(command, code)


# --- torch.utils.cpp_extension ---


def _find_cuda_home() -> str:
    """The toolkit: the one that was named, beside the Python packages, on PATH, at its usual place."""
    named = os.environ.get("DRK_CUDA_HOME")
    if named:
        return named
    packages = sysconfig.get_path("purelib")
    found = shutil.which("nvcc")
    candidates = [os.path.join(packages, "nvidia", "cu13")]
    candidates += [os.path.dirname(os.path.dirname(os.path.realpath(found)))] if found else []
    candidates += ["/usr/local/cuda"]
    for folder in candidates:
        if os.access(os.path.join(folder, "bin", "nvcc"), os.X_OK):
            return folder
    return ""


class _PatchingFinder:
    """Patches modules of torch's when a guest imports them, torch.utils.cpp_extension above all.

    In the zygote that import would ask the CUDA runtime for its devices, and no guest could use it then.
    """

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        patch = _PATCHES.get(name)
        if patch is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_patch(module: ModuleType) -> None:
            execute(module)
            patch(module)

        spec.loader.exec_module = execute_and_patch
        return spec


def _patch_extensions(extensions: ModuleType) -> None:
    """torch goes on to write sources, choose flags and load; no ninja is looked for, nothing is run."""
    extensions._write_ninja_file = _remember_build
    extensions._write_ninja_file_and_build_library = _build_library
    extensions._check_and_build_extension_h_precompiler_headers = lambda *_: None


def _patch_debug_utils(debug_utils: ModuleType) -> None:
    """torch.compile asks nvcc for its version, for a comment in a report that nobody reads here."""
    debug_utils._cuda_system_info_comment = lambda: ""


_PATCHES = {_EXTENSIONS: _patch_extensions, "torch._dynamo.debug_utils": _patch_debug_utils}

_asked: dict[str, object] = {}  # by the last call of torch's _write_ninja_file


def _remember_build(path: str, **what: object) -> None:
    _asked.clear()
    _asked.update(what)


def _build_library(
    name: str,
    sources: list[str],
    extra_cflags: list[str] | None,
    extra_cuda_cflags: list[str] | None,
    extra_sycl_cflags: list[str] | None,
    extra_ldflags: list[str] | None,
    extra_include_paths: list[str] | None,
    build_directory: str,
    verbose: bool,
    with_cuda: bool | None,
    with_sycl: bool | None,
    is_standalone: bool = False,
) -> None:
    extensions = sys.modules[_EXTENSIONS]
    failed = f"Error building extension '{name}'"
    if with_sycl:
        raise RuntimeError(f"{failed}: there is no compiler for SYCL")
    if with_cuda is None:
        with_cuda = any(map(extensions._is_cuda_file, sources))
    if with_cuda and not _find_cuda_home():
        raise ToolMissing(
            f"{failed}: needs nvcc: there is none beside the Python packages, on PATH or in"
            " /usr/local/cuda"
        )
    # For the device that is here, whatever the code says of others; without one, to see it compile.
    arch = os.environ.get("DRK_CUDA_ARCH")
    os.environ["TORCH_CUDA_ARCH_LIST"] = arch or "9.0"
    extensions._write_ninja_file_to_build_library(
        path="",
        name=name,
        sources=sources,
        extra_cflags=extra_cflags or [],
        extra_cuda_cflags=extra_cuda_cflags or [],
        extra_sycl_cflags=[],
        extra_ldflags=extensions._prepare_ldflags(
            extra_ldflags or [], with_cuda, with_sycl, verbose, is_standalone
        ),
        extra_include_paths=extra_include_paths or [],
        with_cuda=with_cuda,
        with_sycl=False,
        is_standalone=is_standalone,
    )
    arguments = [":sources", *map(_plain_name, sources)]
    arguments += [":cxx", *_flags(_asked["cflags"])]
    arguments += [":cuda", *_flags(_asked["cuda_cflags"])]
    files = _files_for(sources, extra_include_paths)
    device_code = b"".join(code for name, code in files.items() if not name.endswith(_HOST_SOURCES))
    if not any(word in device_code for word in (b"py::", b"PYBIND", b"pybind")):
        arguments.append("-DDRK_NO_BINDINGS")  # for the slim torch/extension.h
    arguments += [":link", *map(_with_versions, _flags(_asked["ldflags"]))]
    code, log, product = _build("extension", arguments, files)
    if verbose and log:
        print(log, flush=True)
    if product is None:
        raise (ToolMissing if code == _NO_TOOL else RuntimeError)(f"{failed}: {log}")
    os.makedirs(build_directory, exist_ok=True)
    path = os.path.join(build_directory, str(_asked["library_target"]))
    _write(path, product)
    os.chmod(path, 0o755)
    if with_cuda and arch is None:
        raise ToolMissing(f"extension '{name}' was built, but needs a GPU to run on")


def _plain_name(path: str) -> str:
    """How a file is called where it is compiled: the same below the one folder that can be written."""
    path = os.path.abspath(path)
    return os.path.relpath(path, _SCRATCH) if path.startswith(_SCRATCH + "/") else path


def _flags(lines: object) -> list[str]:
    """What a shell would make of ninja's flags, with folders of ours called as they are there."""
    flags = shlex.split(" ".join(lines or []))
    for i, flag in enumerate(flags):
        if flag.startswith(("-I" + _SCRATCH, "-L" + _SCRATCH)):
            flags[i] = flag[:2] + _plain_name(flag[2:])
    return flags


def _with_versions(flag: str) -> str:
    """-lcudart, where the packages have no libcudart.so but libcudart.so.13."""
    if not flag.startswith("-l") or flag.startswith("-l:"):
        return flag
    folder = os.path.join(_find_cuda_home(), "lib")
    file = f"lib{flag[2:]}.so"
    if not os.path.isdir(folder) or os.path.exists(os.path.join(folder, file)):
        return flag
    versions = sorted(name for name in os.listdir(folder) if name.startswith(file + "."))
    return f"-l:{versions[-1]}" if versions else flag


def _files_for(sources: list[str], include_paths: list[str] | None) -> dict[str, bytes]:
    """The sources, and the headers beside them and in folders that were named."""
    files = {}
    folders = {os.path.dirname(os.path.abspath(source)) for source in sources}
    folders |= {os.path.abspath(path) for path in include_paths or []}
    paths = {os.path.abspath(source) for source in sources}
    for folder in sorted(folders):
        if folder != _SCRATCH and not folder.startswith(_SCRATCH + "/"):
            continue  # the system's, seen there as here
        for place, _, names in os.walk(folder):
            paths |= {os.path.join(place, name) for name in names if name.endswith(_HEADERS)}
    for path in sorted(paths):
        if path.startswith(_SCRATCH + "/"):
            files[_plain_name(path)] = _read(path)
    return files


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as stream:
        stream.write(content)
