"""Types of columns that may change: which type holds the values of two others.

    byte, smallint, int, bigint    the larger one
    float, double                  double
    decimal(p,s)                   the one with at least as many digits on both sides of the point
    struct                         the fields of both, each with its wider type
    array, map                     with the wider type of their elements; the keys of a map keep theirs
    all others                     must be equal

Each of these conversions keeps every value. A date does not become a timestamp: which moment it is depends on
a time zone.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
)

from penstock.spark.lake.manifest import ArchiveError

TypeTest = Callable[[DataType, DataType], bool]  # of the old type and the new one

_LADDERS: tuple[tuple[type[DataType], ...], ...] = (
    (ByteType, ShortType, IntegerType, LongType),
    (FloatType, DoubleType),
)


class TypeConflict(ArchiveError):
    """A column, or a part of it, has a type that does not go with the lake's."""

    def __init__(self, path: tuple[str, ...], new: str, old: str) -> None:
        self.path, self.new, self.old = path, new, old
        super().__init__(
            f"column {'.'.join(path)} is {new}, but {old} in the lake: cast it to {old}, rename it, or"
            " archive into another directory. Nothing was written"
        )


def is_same(one: DataType, other: DataType) -> bool:
    """Whether two types differ at most in what may be null."""
    return one.simpleString() == other.simpleString()


def wider(old: DataType, new: DataType, path: tuple[str, ...]) -> DataType:
    """The type that holds the values of both. Raises: TypeConflict, with the path of a part."""
    if is_same(old, new):
        return old
    if isinstance(old, StructType) and isinstance(new, StructType):
        return _wider_struct(old, new, path)
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return ArrayType(wider(old.elementType, new.elementType, path))
    if isinstance(old, MapType) and isinstance(new, MapType) and is_same(old.keyType, new.keyType):
        return MapType(old.keyType, wider(old.valueType, new.valueType, path))
    for one, other in ((old, new), (new, old)):
        if _holds(one, other):
            return one
    raise TypeConflict(path, new.simpleString(), old.simpleString())


def is_promoted(old: DataType, new: DataType) -> bool:
    """Whether Iceberg reads older values of a simple type as the new one."""
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        return old.scale == new.scale and old.precision <= new.precision
    return is_same(old, new) or (not isinstance(new, DecimalType) and _holds(new, old))


def only_adds_fields(old: DataType, new: DataType, simple: TypeTest = is_same) -> bool:
    """Whether a type has the same parts as another one, and at most more fields in structs.

    `simple` compares the types of parts that have no parts themselves.
    """
    if isinstance(old, StructType) and isinstance(new, StructType):
        parts = {field.name: field.dataType for field in new}
        return all(
            one.name in parts and only_adds_fields(one.dataType, parts[one.name], simple)
            for one in old
        )
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return only_adds_fields(old.elementType, new.elementType, simple)
    if isinstance(old, MapType) and isinstance(new, MapType):
        values = (old.valueType, new.valueType)
        return is_same(old.keyType, new.keyType) and only_adds_fields(*values, simple)
    return simple(old, new)


def wider_field(there: StructField, mine: StructField, path: tuple[str, ...] = ()) -> DataType:
    """The type of a column or a field of a struct that holds the values of both. Raises: ArchiveError."""
    if there.name != mine.name:
        raise ArchiveError(
            f"column {'.'.join((*path, mine.name))}: the lake spells it {there.name}. Use that spelling,"
            " because some readers distinguish case and some do not"
        )
    return wider(there.dataType, mine.dataType, (*path, mine.name))


def _wider_struct(old: StructType, new: StructType, path: tuple[str, ...]) -> StructType:
    mine = {field.name.lower(): field for field in new}
    fields = []
    for field in old:
        other = mine.pop(field.name.lower(), None)
        kind = field.dataType if other is None else wider_field(field, other, path)
        fields.append(StructField(field.name, kind))
    return StructType([*fields, *(StructField(one.name, one.dataType) for one in mine.values())])


def _holds(one: DataType, other: DataType) -> bool:
    """Whether a simple type holds all values of another one."""
    if isinstance(one, DecimalType) and isinstance(other, DecimalType):
        whole, others = one.precision - one.scale, other.precision - other.scale
        return one.scale >= other.scale and whole >= others
    for ladder in _LADDERS:
        if type(one) in ladder and type(other) in ladder:
            return ladder.index(type(one)) > ladder.index(type(other))
    return False


def converted(value: Column, have: DataType, wanted: DataType) -> Column:
    """A value as the wider type. Fields of a struct that it lacks are null."""
    if is_same(have, wanted):
        return value
    if isinstance(have, StructType) and isinstance(wanted, StructType):
        parts = [_part(value, have, field) for field in wanted]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(have, ArrayType) and isinstance(wanted, ArrayType):
        inside = (have.elementType, wanted.elementType)
        return F.transform(value, lambda one: converted(one, *inside))
    if isinstance(have, MapType) and isinstance(wanted, MapType):
        inside = (have.valueType, wanted.valueType)
        return F.transform_values(value, lambda _key, one: converted(one, *inside))
    return value.cast(wanted)


def _part(value: Column, have: StructType, field: StructField) -> Column:
    if field.name not in have.names:
        return F.lit(None).cast(field.dataType).alias(field.name)
    part = value.getField(field.name)
    return converted(part, have[field.name].dataType, field.dataType).alias(field.name)
