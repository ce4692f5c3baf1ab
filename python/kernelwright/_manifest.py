"""What the library says about its ops (kw/core/manifest.h says how), as plain objects."""

import json
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Tensor:
    """An input or a result of a contract. `element` and `shape` are kept as in the manifest."""

    name: str
    element: object
    shape: list
    optional: bool = False
    is_list: bool = False
    written: bool = False
    kind: str = "input"  # or output, saved, scratch
    present_with: str | None = None  # a result that is there only when this input is
    below: str | None = None  # an input of whole numbers that count within this dimension


@dataclass(frozen=True)
class Attribute:
    name: str
    type: str  # float, int, bool, str, enum
    default: object = None
    required: bool = True
    values: tuple = ()
    bounds: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Gradient:
    targets: list[str]
    results: list[int]  # by target: which result of the backward op it is; two targets may share one
    op: str
    arguments: list[str]


@dataclass(frozen=True)
class Op:
    index: int
    name: str
    room: str
    contract: str
    capturable: bool
    backward_of: str | None
    dims: dict  # name -> variadic
    types: dict  # name -> options
    inputs: list[Tensor]
    attributes: list[Attribute]
    results: list[Tensor]  # outputs, saved, scratch
    gradient: Gradient | None

    @cached_property
    def outputs(self) -> list[Tensor]:
        return [r for r in self.results if r.kind == "output"]

    @cached_property
    def kept(self) -> list[Tensor]:
        """Outputs and saved results: what the private torch op returns."""
        return [r for r in self.results if r.kind != "scratch"]

    @cached_property
    def arguments(self) -> list[Tensor | Attribute]:
        """Inputs, then attributes: the order of every framework's function."""
        return [*self.inputs, *self.attributes]

    @cached_property
    def defaults(self) -> list:
        """For each argument its default, or `required`: a default needs one for everything behind it."""
        found, usable = [], True
        for a in reversed(self.arguments):
            if isinstance(a, Tensor):
                usable = usable and a.optional and not a.is_list
                found.append(None if usable else required)
            else:
                usable = usable and not a.required
                found.append(a.default if usable else required)
        return found[::-1]

    def fill(self, values) -> tuple:
        """Arguments with the defaults that torch's dispatcher left out."""
        return (*values, *self.defaults[len(values) :])

    @cached_property
    def writes(self) -> list[int]:
        """Indices of the inputs that the op writes to."""
        return [i for i, t in enumerate(self.inputs) if t.written]


class _Required:
    def __repr__(self):
        return "required"


required = _Required()


def parse(text: str) -> list[Op]:
    return [_op(o) for o in json.loads(text)["ops"]]


def _op(o: dict) -> Op:
    return Op(
        index=o["index"],
        name=o["name"],
        room=o["room"],
        contract=o["contract"],
        capturable=o["capturable"],
        backward_of=o["backward_of"],
        dims={d["name"]: d["variadic"] for d in o["dims"]},
        types={t["name"]: t["options"] for t in o["types"]},
        inputs=[
            Tensor(i["name"], i["element"], i["shape"], i["optional"], i["list"], i["written"], below=i.get("below"))
            for i in o["inputs"]
        ],
        attributes=[
            Attribute(
                a["name"],
                a["type"],
                a.get("default"),
                "default" not in a,
                tuple(a.get("values", ())),
                {k: a[k] for k in ("at_least", "above", "at_most", "below") if k in a},
            )
            for a in o["attributes"]
        ],
        results=[
            Tensor(r["name"], r["element"], r["shape"], kind=r["kind"], present_with=r["present_with"])
            for r in o["results"]
        ],
        gradient=Gradient(**o["gradient"]) if o["gradient"] else None,
    )
