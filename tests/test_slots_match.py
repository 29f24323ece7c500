"""The attributes of a class in a .pxd are the __slots__ of that class in the .py.

An attribute that is missing from the .pxd compiles, and fails at run time in the compiled build only. One
that is missing from __slots__ fails in the interpreted build only.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.source_tree import name_of, package_files, parse

CLASS = re.compile(r"^cdef\s+class\s+(\w+)")
ATTRIBUTE = re.compile(r"^\s+cdef\s+[\w.\s*\[\],:]*?(\w+(?:\s*,\s*\w+)*)$")


def declared_attributes(pxd: str) -> dict[str, set[str]]:
    """The cdef attributes of each cdef class in the text of a .pxd."""
    classes: dict[str, set[str]] = {}
    current: set[str] = set()
    for line in pxd.splitlines():
        code = line.split("#")[0].rstrip()
        if found := CLASS.match(code):
            current = classes.setdefault(found[1], set())
        elif code and not code[0].isspace():
            current = set()
        elif found := ATTRIBUTE.match(code):
            current |= {name.strip() for name in found[1].split(",")}
    return classes


def declared_slots(module: ast.Module) -> dict[str, set[str]]:
    """The literal __slots__ of each class of a module."""
    slots: dict[str, set[str]] = {}
    for owner in (node for node in module.body if isinstance(node, ast.ClassDef)):
        for node in owner.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
                names = ast.literal_eval(node.value)
                slots[owner.name] = {names} if isinstance(names, str) else set(names)
    return slots


@pytest.mark.parametrize("pxd", package_files(".pxd"), ids=name_of)
def test_attributes_are_the_slots(pxd: Path) -> None:
    attributes = declared_attributes(pxd.read_text())
    slots = declared_slots(parse(pxd.with_suffix(".py")))
    assert {name: slots.get(name) for name in attributes} == attributes


def test_methods_are_not_counted_as_attributes() -> None:
    pxd = """
cdef int _LIMIT

cdef class Node(Base):
    cdef public bytearray data  # grows
    cdef readonly unsigned long long first_ms, last_ms
    cdef Py_ssize_t[:] view
    cdef object __weakref__
    @cython.locals(at="Py_ssize_t")
    cdef int move(self, Py_ssize_t at, object other) except -1
    cpdef bytes cut(self)

cdef inline int twin(Node node, int at)
"""
    assert declared_attributes(pxd) == {
        "Node": {"data", "first_ms", "last_ms", "view", "__weakref__"}
    }
