"""100,000 random calls: what the library's kw_infer says about each, the Python side (the fake kernels' inference) must say too.

    python tests/torch/fuzz_inference.py CALLS SEED        prints one line; exit status 1 with the first disagreements

The contracts: those of the library; those of tests/cpp/dozen.h; random ones; and what mutations of all these the parser still takes. They
are registered through the C face as rooms of their own, so this must be a process of its own. Half of the calls fit, as far as chance goes;
in the others something is off. One in ten has sizes near the end of 64 bits, where Python's whole numbers go on and the library refuses."""
import ctypes
import random
import re
import sys
import time
from pathlib import Path

from kernelwright import _manifest
from kernelwright._library import library
from kernelwright.torch._fake import DTYPES, make_fake
from test_inference import _Argument, _Attribute, _Call, _Spec, _Tensor

ROOT = Path(__file__).resolve().parents[2]
NAMES, TYPES = list(DTYPES), list(DTYPES.values())  # both in the order of kw_dtype
HUGE = (2**31, 2**40, 2**62, 2**63 - 1, 2**63 - 2)

Function = ctypes.CFUNCTYPE(ctypes.c_int32)
never = Function(lambda: 1)  # nothing is run


class _Def(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("abi_version", ctypes.c_uint32), ("contract", ctypes.c_char_p)]
    _fields_ += [(n, Function) for n in ("choose", "fill", "cpu", "reference")]
    _fields_ += [("bench", ctypes.c_void_p), ("bench_count", ctypes.c_int32), ("roundings", ctypes.c_void_p)]


class _Room(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("abi_version", ctypes.c_uint32), ("name", ctypes.c_char_p)]
    _fields_ += [("ops", ctypes.POINTER(ctypes.POINTER(_Def))), ("op_count", ctypes.c_int32), ("sources", ctypes.c_void_p)]


ABI_VERSION = int(re.search(r"KW_ABI_VERSION\D*(\d+)", (ROOT / "kw/core/abi.h").read_text())[1])
keep = []  # what the library points to, for the life of the process


def register(contract: str) -> bool:
    """False when the library refuses it, which has to be by a sentence."""
    d = _Def(ctypes.sizeof(_Def), ABI_VERSION, contract.encode("utf-8", "surrogateescape"), never, never, never, never)
    pointer = (ctypes.POINTER(_Def) * 1)(ctypes.pointer(d))
    room = _Room(ctypes.sizeof(_Room), ABI_VERSION, f"fuzz_room_{len(keep)}".encode(), pointer, 1, None)
    keep.append((d, pointer, room))
    library._c.kw_register_room.argtypes = [ctypes.c_void_p]
    if library._c.kw_register_room(ctypes.byref(room)) == 0:
        return True
    assert len(library.last_error()) > 20, contract
    return False


# ---- contracts ------------------------------------------------------------------------------------------------------------------------


def size(r) -> str:
    d = r.choice("NMK")
    return r.choice([d, d, d, str(r.randrange(1, 4)), f"{r.randrange(2, 4)}*{d}", f"{d}/2", f"{d}+1", f"{d}-1", f"{d}+{r.choice('NMK')}"])


def tensor(r, elements) -> str:
    return f"{r.choice(elements)}[{', '.join(r.choice([[], ['*B'], ['*B']]) + [size(r) for _ in range(r.randrange(3))])}]"


def random_contract(r, name: str) -> str:
    elements = ["T", "T", "W", "acc(T)", "f32", "i64"]
    inputs = ["x: " + r.choice(["T[*B, N]", "T[*B, 2*N]", "T[N, M]", "T[*B]"])]
    inputs += [f"a{i}: {tensor(r, elements)}{r.choice(['', '', '?'])}" for i in range(r.randrange(3))]
    results = [f"y{i}: {tensor(r, elements)}" for i in range(1 + r.randrange(2))]
    options = " ".join(r.sample(["f16", "bf16", "f32", "f64", "i8", "i32"], 1 + r.randrange(3)))
    return f"{name}({', '.join(inputs)}) -> ({', '.join(results)}) where T: {options}, W: T f32"


PIECES = ["?", "!", "...", "2*", "+1", "/2", "*B, ", "N", "M", ", z: T[N]", "f16", " max ", " saved ", "\xff", "\0"]


def mutated(r, text: str, others: list[str]) -> str:
    for _ in range(1 + r.randrange(2)):
        at = r.randrange(len(text) + 1)
        other = r.choice(others)
        start = r.randrange(len(other))
        piece = r.choice([r.choice(PIECES), other[start : start + 1 + r.randrange(12)]])
        text = text[:at] + piece + text[at + r.choice([0, 0, 1, len(piece)]) :]
    return text


def all_contracts(r, count: int) -> int:
    """Registers; how many texts were refused."""
    dozen = re.findall(r'R"\((.*?)\)"', (ROOT / "tests/cpp/dozen.h").read_text(), re.S)
    # A gradient names another op, which these do not have; inference knows nothing of it.
    plain = [re.sub(r"\bgradient\b.*", "", text).strip() for text in [*dozen, *(op.contract for op in library.ops())]]
    refused = 0
    for i in range(count):
        name = f"fuzz_{i}"
        text = random_contract(r, name) if i % 2 else re.sub(r"^\s*\w+", name, r.choice(plain))
        if i % 4 < 2 and i >= 2 * len(plain):
            text = name + mutated(r, text.removeprefix(name), plain)
        refused += not register(text)
    return refused


# ---- calls ----------------------------------------------------------------------------------------------------------------------------


class Stub:
    """As much of a tensor as the fake kernels look at."""

    device = "cpu"

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype

    def new_empty(self, shape, dtype):
        return Stub(tuple(shape), dtype)

    def view(self):
        sizes = (ctypes.c_int64 * 8)(*self.shape[:8])
        strides, step = (ctypes.c_int64 * 8)(), 1
        for d in range(min(len(self.shape), 8) - 1, -1, -1):
            strides[d] = step
            step = min(step * max(1, self.shape[d]), 2**63 - 1)
        return _Tensor(None, sizes, strides, len(self.shape), TYPES.index(self.dtype), 1, 0)


def value(place, dims) -> int:
    if isinstance(place, int):
        return place
    if isinstance(place, str):
        return dims[place]
    a, b = value(place[1], dims), value(place[2], dims)
    return {"add": a + b, "sub": a - b, "mul": a * b, "div": a // b if b else 0, "min": min(a, b), "max": max(a, b)}[place[0]]


def element(op, e, types, r) -> str:
    if isinstance(e, str):
        return e
    if "accumulator" in e:
        of = types[e["accumulator"]]
        return "f64" if of == "f64" else "f32" if DTYPES[of].is_floating_point else "i64"
    return types[e["variable"]]


def random_call(op, r, disorder: int, huge: bool) -> list:
    dims = {name: [1 + r.randrange(3) for _ in range(r.randrange(4))] if variadic else r.choice([0, 1, 2, 2, 4, 4, 6, 8, 3, 5])
            for name, variadic in op.dims.items()}
    types = {}
    for name, options in op.types.items():
        option = r.choice(options)
        types[name] = option if isinstance(option, str) else types[option["variable"]]

    def off():
        return disorder and r.randrange(disorder) == 0

    def one(t):
        shape = []
        for p in t.shape:
            shape += dims[p[1:]] if isinstance(p, str) and p[0] == "*" else [max(0, value(p, dims))]
        if off() and shape:
            shape[r.randrange(len(shape))] = r.randrange(8)
        if off():
            shape.insert(0, 1 + r.randrange(2))
        if off() and shape:
            shape.pop()
        if huge and shape and r.randrange(2):
            shape[r.randrange(len(shape))] = r.choice(HUGE)
        return Stub(tuple(shape), r.choice(TYPES) if off() else DTYPES[element(op, t.element, types, r)])

    arguments = []
    for t in op.inputs:
        if r.randrange(2) if t.optional else off() and not r.randrange(4):
            arguments.append(None)
        else:
            arguments.append([one(t) for _ in range(1 + r.randrange(2))] if t.is_list else one(t))
    return arguments


def attributes(op) -> list:
    """Values within the bounds: inference in Python leaves attributes to the kernels."""
    found = []
    for a in op.attributes:
        if not a.required:
            found.append(a.default)
        elif a.type == "enum":
            found.append(a.values[0])
        elif a.type == "str":
            found.append("text")
        elif a.type == "bool":
            found.append(True)
        else:
            low = a.bounds.get("at_least", a.bounds.get("above", 0))
            middle = (low + a.bounds.get("at_most", a.bounds.get("below", low + 2))) / 2
            found.append(int(middle) if a.type == "int" else middle)
    return found


BROKEN = "not refused, but broken: "


class Infer:
    """kw_infer of one op, its call structure made once."""

    def __init__(self, op):
        self.op, self.values = op, attributes(op)
        self.address = library._c.kw_op_find(op.name.encode())
        self.inputs, self.attributes, self.specs = (_Argument * 16)(), (_Attribute * 16)(), (_Spec * 48)()
        for k, (a, v) in enumerate(zip(op.attributes, self.values)):
            if a.type == "float":
                self.attributes[k].f = v
            elif a.type == "str":
                self.attributes[k].s = v.encode()
            else:
                self.attributes[k].i = a.values.index(v) if a.type == "enum" else int(v)
        self.call = _Call(self.inputs, None, self.attributes, None)
        self.fake = make_fake(op, op.kept)
        self.gone = [next((i for i, t in enumerate(op.inputs) if t.name == r.present_with), None) for r in op.kept]

    def library_says(self, arguments):
        held = []
        for i, value in enumerate(arguments):
            tensors = [] if value is None else value if isinstance(value, list) else [value]
            views = (_Tensor * max(1, len(tensors)))(*(t.view() for t in tensors))
            held.append(views)
            self.inputs[i] = _Argument(views, len(tensors))
        if library._c.kw_infer(self.address, ctypes.byref(self.call), self.specs):
            return library.last_error()
        return [(TYPES[s.dtype], tuple(s.sizes[: s.rank])) if s.present else None for s in self.specs[: len(self.op.kept)]]

    def python_says(self, arguments):
        try:
            results = self.fake(*arguments, *self.values)
        except RuntimeError as e:
            return str(e)
        except Exception as e:  # an inference that breaks is a disagreement, whatever the library says
            return BROKEN + f"{type(e).__name__}: {e}"
        results = [] if results is None else results if isinstance(results, tuple) else (results,)
        return [None if at is not None and arguments[at] is None else (r.dtype, r.shape) for r, at in zip(results, self.gone)]


def main(calls: int, seed: int) -> int:
    start, r = time.monotonic(), random.Random(seed)
    texts = 1200
    refused = all_contracts(r, texts)
    library._c.kw_infer.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    ops = [Infer(op) for op in _manifest.parse(library._c.kw_manifest().decode())]
    assert texts // 4 < refused < texts and len(ops) > texts // 5, (refused, len(ops))
    wrong, fit, unfit, beyond = [], 0, 0, 0
    for k in range(calls):
        op = ops[k % len(ops)]
        huge = k // len(ops) % 10 == 9
        arguments = random_call(op.op, r, 8 if k // len(ops) % 2 else 0, huge)
        a, b = op.library_says(arguments), op.python_says(arguments)
        if isinstance(b, str) and b.startswith(BROKEN):
            agree = False
        elif isinstance(a, str) and not isinstance(b, str) and huge:
            beyond += 1
            agree = a.startswith(op.op.name + ": ")
        elif isinstance(a, str) or isinstance(b, str):
            unfit += 1
            agree = isinstance(a, str) and isinstance(b, str) and a.startswith(op.op.name + ": ") and b.startswith(op.op.name + ": ")
        else:
            fit += 1
            agree = a == b
        if not agree:
            shapes = [[(t.shape, t.dtype) for t in v] if isinstance(v, list) else v and (v.shape, v.dtype) for v in arguments]
            wrong.append(f"{op.op.contract}\n  {shapes}\n  library: {a}\n  Python:  {b}")
    print(f"{len(ops)} contracts ({refused} of {texts} texts refused), {calls} calls: {fit} fit, {unfit} do not, {beyond} beyond 64 bits, "
          f"{len(wrong)} disagreements, {time.monotonic() - start:.1f} s")
    print("\n".join(wrong[:3]))
    return bool(wrong) or fit < calls / 4 or unfit < calls / 10


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
