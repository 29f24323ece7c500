"""House rules that no linter checks: no paths of this machine, a docstring in every module, size limits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_tree import PACKAGE, name_of, package_files, parse, repository_files

MACHINE = re.compile(r"/(?:home|root|work|Users|opt|mnt)/\w|\bfile:/{2}|\blocalhost:\d")
# The brackets keep these lines from matching themselves.
REGISTRY = re.compile(
    r"pyp[i]\.org|pythonhoste[d]\.|\binde[x]-url|\bfind-link[s]|docker\.i[o]|npmj[s]\."
    r"|https?://\S*(?:simple|registry|wheel)"
)

LINES_MAX = 500
MODULES_MAX = 16
CORE_LINES_MAX = 700  # modules of core start with a long explanation
FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 5

REDIS_PY = "the parameters are redis-py's"
OPTIONS = "one parameter for each option of the command"

# A file or function over its limit, and why that is allowed.
ALLOWED = {
    "src/penstock/core/spans.py:append_same_entry": "hot: must not create an object for each entry",
    "src/penstock/core/groups/group.py:Group.deliver_to": "hot: must not create an object for each read",
    "src/penstock/core/memory.py:note_bulks": "hot: must not create an object for each command",
    "src/penstock/core/memory.py:put_fields": "hot: must not create an object for each entry",
    "src/penstock/cli/commands/add.py:add": OPTIONS,
    "src/penstock/cli/commands/inspect.py:inspect": OPTIONS,
    "src/penstock/cli/commands/pending.py:pending": OPTIONS,
    "src/penstock/cli/commands/pipeline.py:run": OPTIONS,
    "src/penstock/cli/commands/replay.py:replay": OPTIONS,
    "src/penstock/cli/commands/tail.py:tail": OPTIONS,
    "src/penstock/cli/commands/ui.py:ui": OPTIONS,
    "src/penstock/cli/commands/dead.py:dead": OPTIONS,
    "src/penstock/cli/commands/worker.py:worker": OPTIONS,
    "src/penstock/core/stream_node.py:append_entry": "hot: must not create an object for each entry",
    "src/penstock/embedded/opening.py:open": "keyword options, each with a default",
    "src/penstock/embedded/database.py:Database.xadd": REDIS_PY,
    "src/penstock/embedded/database.py:Database.xtrim": REDIS_PY,
    "src/penstock/embedded/database.py:Database.xreadgroup": REDIS_PY,
    "src/penstock/embedded/group_methods.py:GroupMethods.xpending_range": REDIS_PY,
    "src/penstock/embedded/group_methods.py:GroupMethods.xclaim": REDIS_PY,
    "src/penstock/embedded/group_methods.py:GroupMethods.xautoclaim": REDIS_PY,
    "src/penstock/embedded/group_methods.py:GroupMethods.xnack": REDIS_PY,
    "src/penstock/embedded/key_methods.py:KeyMethods.expire": REDIS_PY,
    "src/penstock/embedded/key_methods.py:KeyMethods.expireat": REDIS_PY,
    "src/penstock/embedded/key_methods.py:KeyMethods.pexpire": REDIS_PY,
    "src/penstock/embedded/key_methods.py:KeyMethods.pexpireat": REDIS_PY,
    "src/penstock/engine/table.py:Command.__init__": "one parameter for each column of the table",
}

MODULES = package_files(".py")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[tuple[str, Function]]:
    """Every function of a file with its name, file:function or file:Class.method."""
    for owner in ast.walk(parse(path)):
        prefix = f"{owner.name}." if isinstance(owner, ast.ClassDef) else ""
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, Function):
                yield f"{name_of(path)}:{prefix}{node.name}", node


def lines(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def parameters(node: Function) -> int:
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names += [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return len([name for name in names if name not in ("self", "cls")])


def test_nothing_names_this_machine_or_a_registry() -> None:
    found = [
        f"{name_of(path)}: {match[0]}"
        for path in repository_files()
        for rule in (MACHINE, REGISTRY)
        for match in rule.finditer(path.read_bytes().decode(errors="replace"))
    ]
    assert not found


def test_constraints_are_names_and_versions() -> None:
    constraints = next(path for path in repository_files() if path.name == "constraints.txt")
    for line in constraints.read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9.]+(?:b[0-9]+)?", line), line


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(parse(path)), f"{name_of(path)} has no docstring"


def over_limit(path: Path) -> dict[str, str]:
    """The file and its functions that exceed a limit, with the number that was counted."""
    over = {}
    limit = CORE_LINES_MAX if path.is_relative_to(PACKAGE / "core") else LINES_MAX
    count = len(path.read_text().splitlines())
    if count > limit:
        over[name_of(path)] = f"{count} lines of {limit}"
    for name, node in functions(path):
        if lines(node) > FUNCTION_LINES_MAX:
            over[name] = f"{lines(node)} lines of {FUNCTION_LINES_MAX}"
        elif parameters(node) > PARAMETERS_MAX:
            over[name] = f"{parameters(node)} parameters of {PARAMETERS_MAX}"
    return over


def test_files_and_functions_stay_within_their_limits() -> None:
    over = {name: why for path in MODULES for name, why in over_limit(path).items()}
    assert {name: over[name] for name in over.keys() - ALLOWED.keys()} == {}
    assert ALLOWED.keys() - over.keys() == set(), "these allowances are no longer needed"


TESTS = PACKAGE.parents[1] / "tests"
PACKAGES = [path.parent for path in package_files("__init__.py") if path.parent != PACKAGE]
PACKAGES += [TESTS / "support", *sorted(path.parent for path in TESTS.glob("support/*/*.py"))]


@pytest.mark.parametrize("package", sorted(set(PACKAGES)), ids=name_of)
def test_a_package_is_small_and_lists_its_modules(package: Path) -> None:
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    assert len(modules) <= MODULES_MAX
    parts = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    listed: set[str] = set()
    for names in re.findall(r"^ *([\w/]+(?:, [\w/]+)*)  ", docstring_of(package), re.M):
        listed |= set(names.split(", "))
    assert listed == modules | parts


def docstring_of(package: Path) -> str:
    return ast.get_docstring(parse(package / "__init__.py"), clean=False) or ""


TEST_FOLDERS = sorted({path.parent for path in TESTS.rglob("*.py")})


@pytest.mark.parametrize("folder", TEST_FOLDERS, ids=name_of)
def test_a_folder_of_tests_is_small(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= MODULES_MAX
