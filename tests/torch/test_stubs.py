"""The stub of kernelwright.torch says what is there, no more and no less, with the signatures and texts that the functions have."""
import ast
import inspect
import types
from pathlib import Path

import kernelwright
import kernelwright.torch as kt
import pytest
from kernelwright._library import library
from kernelwright._stubs import stub

PACKAGE = Path(kernelwright.__file__).parent
STUB = PACKAGE / "torch" / "__init__.pyi"
OPS = [op.name for op in library.ops() if op.backward_of is None]
# The tests load ops of their own; the stub knows those of the rooms.
BUILT_IN = [name for name in OPS if (Path(__file__).parents[2] / "kw/ops" / library.op(name).room).is_dir()]


def shown(text: str) -> dict[str, ast.AST | str]:
    """name -> function, or the module that it comes from."""
    found: dict[str, ast.AST | str] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            assert node.name not in found
            found[node.name] = node
        elif isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                assert alias.asname == alias.name  # else a type checker takes it for private
                found[alias.name] = "." * node.level + (node.module or "")
    return found


@pytest.fixture(scope="module")
def stubbed() -> dict:
    return shown(STUB.read_text())


@pytest.fixture(scope="module")
def compiled() -> types.ModuleType:
    """The stub, run as a module: its functions have signatures that inspect can read."""
    module = types.ModuleType("kernelwright.torch_stub")
    module.__package__ = "kernelwright.torch"
    exec(compile(STUB.read_text(), str(STUB), "exec"), module.__dict__)
    return module


def test_names(stubbed):
    assert set(kt.__all__) - (set(OPS) - set(BUILT_IN)) <= set(stubbed)
    for name, where in stubbed.items():
        assert hasattr(kt, name)
        if isinstance(where, str):
            module = getattr(kt, name).__module__
            assert module.endswith(where.lstrip(".")), f"{name} is of {module}, the stub says {where}"


def test_every_op_has_its_signature_and_its_text(compiled, stubbed):
    assert len(BUILT_IN) >= 3
    for name in [*BUILT_IN, "fast_path"]:
        real, said = getattr(kt, name), getattr(compiled, name)
        assert inspect.signature(said) == inspect.signature(real), name
        assert inspect.getdoc(said) == inspect.getdoc(real) and said.__doc__
        for parameter in inspect.signature(real).parameters.values():
            assert parameter.annotation is not inspect.Parameter.empty


def test_calls_fit_the_stub(compiled):
    """By position and by name, as the documents show them."""
    inspect.signature(compiled.rms_norm).bind("x", "weight", 1e-6)
    inspect.signature(compiled.rms_norm).bind("x", eps=1e-6)
    with pytest.raises(TypeError):
        inspect.signature(compiled.rms_norm).bind("x", epsilon=1)


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_text_says_shapes_dtypes_errors_and_promises(name):
    op, text = library.op(name), getattr(kt, name).__doc__
    for argument in op.arguments:
        assert f"\n{argument.name}: " in text
    for variable, options in op.types.items():
        assert f"{variable} is " in text and all(o in text for o in options if isinstance(o, str))
    assert "ArgumentError" in text and "same bits" in text and ("Differentiable once" in text) == bool(op.gradient)


def test_the_top_level_is_annotated():
    """It has no stub: its functions stand there as they are, and py.typed says so to type checkers."""
    assert (PACKAGE / "py.typed").exists() and not (PACKAGE / "__init__.pyi").exists()
    for name in kernelwright.__all__:
        value = getattr(kernelwright, name)
        if inspect.isfunction(value):
            signature = inspect.signature(value)
            assert signature.return_annotation is not inspect.Signature.empty and value.__doc__, name
            assert all(p.annotation is not inspect.Parameter.empty for p in signature.parameters.values()), name
    assert set(kernelwright.__all__) <= set(dir(kernelwright))


def test_the_stub_follows_a_change(tmp_path):
    """Planted: another function, another name, another room's class."""
    init, room = tmp_path / "__init__.py", tmp_path / "some_torch.py"
    init.write_text('"""Text."""\nfrom ._x import a, _b\nfrom .._y import c\ndef f(n: int, *, m: str = "1") -> list[int]:\n    """F."""\n')
    room.write_text('__all__ = ["Klass"]\n')
    found = shown(stub(init, [room], library.ops()[:1]))
    assert {k: v for k, v in found.items() if isinstance(v, str)} == {"a": "._x", "Klass": "..rooms.some_torch"}
    assert ast.unparse(found["f"].args) == "n: int, *, m: str='1'" and ast.get_docstring(found["f"]) == "F."
