"""The names that `import penstock` exports: a new name is added here on purpose."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import penstock
from penstock import errors

INTENDED = {
    "CommandError",
    "ConfigError",
    "ConnectionLost",
    "CorruptData",
    "DataError",
    "Database",
    "DatabaseClosed",
    "DirectoryInUse",
    "PenstockError",
    "UnreadableValue",
    "WatchError",
    "__version__",
    "open",
}


def test_exports_are_the_intended_ones() -> None:
    assert set(penstock.__all__) == INTENDED
    assert len(penstock.__all__) == len(INTENDED)


def test_every_export_exists_and_nothing_else_does() -> None:
    names = {
        name
        for name, value in vars(penstock).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert names - {"annotations"} == INTENDED - {"__version__"}
    assert penstock.__version__


def test_every_error_is_exported() -> None:
    ours = {name for name, value in vars(errors).items() if isinstance(value, type)}
    of_core = {name for name in ours if issubclass(getattr(errors, name), errors.CoreError)}
    # InvariantBroken is a bug in penstock; ProtocolError never leaves a server's session; the engine turns
    # the errors of core into CommandErrors.
    assert ours - {"InvariantBroken", "ProtocolError"} - of_core <= INTENDED


def test_import_needs_nothing_but_the_standard_library() -> None:
    program = "import sys, penstock; print(*{name.split('.')[0] for name in sys.modules})"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not {"typer", "rich", "redis", "asyncio"} & set(result.stdout.split())


def test_pipelines_are_imported_with_the_package() -> None:
    """Ctrl-C during an import on first use would leave pipelines unusable for the rest of the program."""
    program = "import sys, penstock; print('penstock.embedded.pipeline' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "True\n"
