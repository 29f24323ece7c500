"""Compiles the hot modules: plain .py files with a .pxd beside them.

Without a C compiler, or without Python's headers, the interpreted version is built, with a warning.
With a compiler, a compile error is an error. Environment variables:

PENSTOCK_REQUIRE_COMPILED=1  a missing compiler is an error
PENSTOCK_PURE=1              build the interpreted version
PENSTOCK_SANITIZE=1          build with AddressSanitizer and UndefinedBehaviorSanitizer (`make sanitize`)
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, setup

# Compiled: every module with a .pxd beside it, except these. Their .pxd holds C functions that others inline.
INLINED = {
    "core/memory",
    "core/spans",
    "persist/aof/record_bytes",
    "persist/rdb/lzf_bytes",
    "engine/wall_clock",
    "embedded/thread_ident",
    "server/net/direct",
}

# Compiled only so that no signal handler runs between two of their steps, or for rare commands. Built without
# the slow optimisations, in half the time.
RARELY_RUN = {
    "core/check",
    "core/glob",
    "core/groups/references",
    "core/groups/results",
    "core/idempotency",
    "embedded/lock",
    "embedded/thread_waiter",
    "embedded/transaction",
    "engine/commands/streams/append_batch",
    "engine/commands/streams/claims",
    "engine/commands/streams/reference_options",
    "engine/commands/streams/removal",
    "engine/commands/streams/settings",
    "persist/disk",
    "persist/rdb/writer",
    "server/commands/clients/connection",
    "server/server",
}

PACKAGE = Path("src/penstock")
GENERATED = "build/cython"
# Cython's helper functions, in one module instead of a copy in each.
HELPERS = "penstock._cython_helpers"
# docs/decisions/0007-compiler-flags.md has the measurements behind these flags.
FLAGS = ["-fno-stack-protector", "-g0", "-Wno-sign-compare"]
OPTIMISED, QUICKLY_BUILT = "-O3", "-O1"
# Each class keeps a few dead objects for its next ones. Not in this package: its databases have a finalizer,
# which Python calls only once for a kept object.
KEPT_OBJECTS = 8
KEEPS_NONE = "penstock.embedded."
SANITIZERS = "-fsanitize=address,undefined"
# What is undefined ends the process: a line on stderr would be lost in a test run.
SANITIZE_FLAGS = [SANITIZERS, "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-O1", "-g"]

DIRECTIVES = {
    "language_level": "3",
    "annotation_typing": False,  # annotations are for mypy, the .pxd is for C
    "embedsignature": True,
    "nonecheck": True,  # None in the place of an object is an error, not a crash; 5% of an xadd
    "auto_pickle": False,  # a class that is pickled has __reduce__; saves a tenth of the compile time
}


def compiler_problem_or_none() -> str | None:
    """Say what is missing to build an extension at all, by building the smallest one."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("#include <Python.h>\nint probe(void) { return PY_MAJOR_VERSION; }\n")
        command = [*compiler, "-c", str(source), "-o", str(Path(folder, "probe.o"))]
        command += ["-I" + sysconfig.get_path("include"), "-fPIC"]
        try:
            probe = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            return f"no C compiler ({error})"
    return (
        None
        if probe.returncode == 0
        else f"{compiler[0]} cannot compile: {probe.stderr.strip()[-400:]}"
    )


def modules_to_compile() -> list[str]:
    """The dotted names of the compiled modules, in order."""
    declared = sorted(path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.pxd"))
    names = [path.as_posix() for path in declared if path.name != "__init__"]
    return ["penstock." + name.replace("/", ".") for name in names if name not in INLINED]


def extensions() -> list[Extension]:
    if os.environ.get("PENSTOCK_PURE") == "1":
        print("penstock: PENSTOCK_PURE=1, building the interpreted version", file=sys.stderr)
        return []
    problem = compiler_problem_or_none()
    if problem is not None:
        if os.environ.get("PENSTOCK_REQUIRE_COMPILED") == "1":
            raise SystemExit(f"penstock: {problem}; PENSTOCK_REQUIRE_COMPILED=1 needs a compiler")
        print(
            f"penstock: {problem}; building the INTERPRETED version, much slower", file=sys.stderr
        )
        return []
    sanitize = os.environ.get("PENSTOCK_SANITIZE") == "1"
    modules = [
        Extension(
            name,
            ["src/" + name.replace(".", "/") + (".c" if name == HELPERS else ".py")],
            extra_compile_args=SANITIZE_FLAGS if sanitize else flags_of(name),
            extra_link_args=[SANITIZERS] if sanitize else [],
        )
        for name in (HELPERS, *modules_to_compile())
    ]
    without = [module for module in modules if module.name.startswith(KEEPS_NONE)]
    others = [module for module in modules if module not in without]
    return cythonized(others, KEPT_OBJECTS) + cythonized(without, 0)


def flags_of(name: str) -> list[str]:
    """The compiler flags of a module. The last -O counts: Python's own flags have one too."""
    is_rare = name.removeprefix("penstock.").replace(".", "/") in RARELY_RUN
    return [QUICKLY_BUILT if is_rare else OPTIMISED, *FLAGS]


def cythonized(modules: list[Extension], kept_objects: int) -> list[Extension]:
    """Translate modules into C, those that have changed since the last time."""
    from Cython.Build import cythonize
    from Cython.Compiler import Options

    # A class of a .pxd cannot ask for this by itself.
    Options.get_directive_defaults()["freelist"] = kept_objects
    options = {
        "compiler_directives": DIRECTIVES,
        "build_dir": GENERATED,
        "nthreads": os.cpu_count() or 1,
        "shared_utility_qualified_name": HELPERS,
    }
    stale = [module for module in modules if is_stale(module.name)]
    current = [module for module in modules if module not in stale]
    return cythonize(stale, force=True, **options) + cythonize(current, **options)


def is_stale(name: str) -> bool:
    """Tell whether a module, or a .pxd that it uses in any number of steps, is newer than its generated C.

    Cython itself follows `from package cimport name` only to the package.
    """
    generated = Path(GENERATED, "src", name.replace(".", "/") + ".c")
    if name == HELPERS:
        return False  # Cython writes it again when its own version has changed
    if not generated.exists():
        return True
    source = Path("src", name.replace(".", "/") + ".py")
    used = {source, Path("setup.py")} | declarations_of(source.with_suffix(".pxd"), set())
    return max(path.stat().st_mtime for path in used) > generated.stat().st_mtime


def declarations_of(pxd: Path, found: set[Path]) -> set[Path]:
    """A .pxd, and all that it cimports in any number of steps."""
    if pxd in found or not pxd.exists():
        return found
    found.add(pxd)
    for package, names in re.findall(
        r"^from (penstock[\w.]*) cimport (.+)$", pxd.read_text(), re.M
    ):
        place = Path("src", *package.split("."))
        declarations_of(place.with_suffix(".pxd"), found)
        for imported in names.split(","):
            declarations_of(place / (imported.strip() + ".pxd"), found)
    return found


setup(ext_modules=extensions(), options={"build_ext": {"parallel": True}})
