"""Dataclasses that are made, compared and hashed in C where msgspec is installed.

Import ``dataclass``, ``field``, ``fields``, ``replace`` and ``asdict`` from here, as from the standard
library; these are what type checkers see. ``values_by_field`` is like ``asdict``, but leaves each value as it
is. With msgspec, a dataclass with slots becomes one of its structs, which has the same constructor, equality,
order, hash and representation. The functions of ``dataclasses`` accept it. Making the class takes a thirtieth
of the time, and making an object a tenth. Without msgspec, everything works the same, but slower
(docs/decisions/0035-dataclasses-are-structs.md).

All packages may import this, except those that run where nothing is installed: ``nfparity.capture``,
``nfparity.kubectl`` and ``harness.files``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["asdict", "dataclass", "field", "fields", "replace", "values_by_field"]

if TYPE_CHECKING:
    from dataclasses import asdict, dataclass, field, fields, replace

    def values_by_field(record: object, /) -> dict[str, Any]:
        """Return the values of all fields by name."""
else:
    import dataclasses
    import functools
    from dataclasses import asdict, field, fields
    from operator import attrgetter

    def values_by_field(record, /):
        """Return the values of all fields by name."""
        return {name: getattr(record, name) for name in record.__dataclass_fields__}

    try:
        import msgspec
        from msgspec import NODEFAULT, Struct
    except ImportError:

        def dataclass(cls=None, /, *, slots=False, **options):
            """Return the class as a dataclass; without slots, because copying ``__dict__`` is fastest."""
            return dataclasses.dataclass(cls, **options)

        def replace(original, /, **changes):
            """Return a copy with some fields replaced, in a tenth of the time of ``dataclasses.replace``."""
            copied, values = fields_copied(original.__class__), original.__dict__
            if not changes.keys() <= copied or len(values) > len(copied):  # or with a cached property
                return dataclasses.replace(original, **changes)
            made = object.__new__(original.__class__)
            object.__setattr__(made, "__dict__", values | changes)
            return made

        @functools.cache
        def fields_copied(cls):
            """Return the names of the fields; no name if the constructor does more than to set them."""
            if hasattr(cls, "__post_init__") or not all(known.init for known in fields(cls)):
                return frozenset()
            return cls.__dataclass_fields__.keys()
    else:
        StructMeta = type(Struct)
        FACTORY = type(msgspec.defstruct("", [("made", list, [])]).__struct_defaults__[0])
        FLAGS = frozenset({"frozen", "eq", "order", "kw_only"})
        MADE_BY_STRUCTS = frozenset(
            {
                "__dict__",
                "__match_args__",
                "__slots__",
                "__struct_config__",
                "__struct_defaults__",
                "__struct_encode_fields__",
                "__struct_fields__",
                "__weakref__",
            }
        )
        WRITTEN_BY_HAND = frozenset(
            {"__eq__", "__hash__", "__init__", "__post_init__", "__repr__", "__setattr__"}
        )

        def dataclass(cls=None, /, **options):
            """Return the class as a struct, or else as a dataclass. Raises TypeError if it can be neither."""
            if cls is None:
                return lambda cls: dataclass(cls, **options)
            made = as_struct(cls, options)
            if made is None and isinstance(cls, StructMeta):
                raise TypeError(f"{cls.__qualname__} extends a struct, but needs what structs do not have")
            return made or dataclasses.dataclass(cls, **options)

        replaced = msgspec.structs.replace

        def replace(original, /, **changes):
            """Return a copy with some fields replaced."""
            if isinstance(original, Struct):
                return replaced(original, **changes)
            return dataclasses.replace(original, **changes)

        class FieldsWhenRead:
            """The attribute by which the functions of ``dataclasses`` know the fields of a class."""

            def __get__(self, instance, owner):
                """Make the attribute, which takes as long as making a dataclass, and keep it."""
                types = {}
                for base in reversed(owner.__mro__):
                    types |= getattr(base, "__annotations__", {})
                names, defaults = owner.__struct_fields__, owner.__struct_defaults__
                values = (*(len(names) - len(defaults)) * (NODEFAULT,), *defaults)
                made = [
                    (name, types[name], field_of(owner, name, value))
                    for name, value in zip(names, values, strict=True)
                ]
                twin = dataclasses.make_dataclass(owner.__name__, made)
                owner.__dataclass_fields__ = twin.__dataclass_fields__
                return owner.__dataclass_fields__

        def field_of(owner, name, default):
            """Return a field of a struct as that of a dataclass."""
            options = {
                "kw_only": name not in owner.__match_args__,
                "compare": name not in owner.__uncompared__,
                "repr": name not in owner.__unshown__,
            }
            if default is NODEFAULT:
                return field(**options)
            if isinstance(default, FACTORY):
                return field(default_factory=default.factory, **options)
            return field(default=default, **options)

        def as_struct(cls, options):
            """Return the class as a struct; None if it needs what structs do not have."""
            namespace = {name: value for name, value in vars(cls).items() if name not in MADE_BY_STRUCTS}
            if WRITTEN_BY_HAND & namespace.keys():
                return None
            if not options.get("slots") or options.keys() - FLAGS - {"slots"}:
                return None
            bases = tuple([base for base in cls.__bases__ if base is not object])
            # Structs have no base with a metaclass of its own, and none whose objects have a __dict__.
            if any(type(base) not in (type, StructMeta) or "__dict__" in dir(base) for base in bases):
                return None
            declared = cls.__annotations__
            if isinstance(cls, StructMeta):
                # The class statement made a struct, since a base is one, and took the values of fields out.
                defaults = cls.__struct_defaults__
                optional = cls.__struct_fields__[len(cls.__struct_fields__) - len(defaults) :]
                values = dict.fromkeys(declared, NODEFAULT) | dict(zip(optional, defaults, strict=True))
                namespace |= {name: values[name] for name in declared}
            else:
                bases = (*bases, Struct)
            uncompared, unshown = (
                {name for base in bases for name in getattr(base, attribute, ())}
                for attribute in ("__uncompared__", "__unshown__")
            )
            for name in declared:
                if isinstance(value := namespace.get(name), dataclasses.Field):
                    if not value.init or value.hash is not None or value.kw_only is True:
                        return None
                    if not value.compare:
                        uncompared.add(name)
                    if not value.repr:
                        unshown.add(name)
                    namespace[name] = default_of(value)
            if uncompared and options.get("order"):
                return None
            namespace |= {
                "__annotations__": declared,
                "__dataclass_fields__": FieldsWhenRead(),
                "__qualname__": cls.__qualname__,
                "__uncompared__": frozenset(uncompared),
                "__unshown__": frozenset(unshown),
            }
            flags = {"eq": True} | {flag: value for flag, value in options.items() if flag in FLAGS}
            made = StructMeta(cls.__name__, bases, namespace, **flags)
            if uncompared and flags["eq"]:
                compare_by(made, [name for name in made.__struct_fields__ if name not in uncompared])
            if unshown:
                show(made, [name for name in made.__struct_fields__ if name not in unshown])
            return made

        def compare_by(made, names):
            """Let a struct compare some fields only, and hash them if it is frozen."""
            compared = attrgetter(*names)

            def equals(self, other):
                return compared(self) == compared(other) if other.__class__ is made else NotImplemented

            def differs(self, other):
                return compared(self) != compared(other) if other.__class__ is made else NotImplemented

            made.__eq__, made.__ne__ = equals, differs
            if made.__struct_config__.frozen:
                made.__hash__ = lambda self: hash(compared(self))

        def show(made, names):
            """Let the representation of a struct have some fields only."""

            def text(self):
                shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
                return f"{made.__qualname__}({shown})"

            made.__repr__ = text

        def default_of(value):
            """Return a field of a dataclass as that of a struct."""
            if value.default_factory is not dataclasses.MISSING:
                return msgspec.field(default_factory=value.default_factory)
            return NODEFAULT if value.default is dataclasses.MISSING else value.default
