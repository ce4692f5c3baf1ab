"""Writes the stub of a framework's module, which editors and type checkers read in place of what that module makes at import.

    python -m kernelwright._stubs FOLDER      FOLDER: a folder of this package; writes FOLDER/torch/__init__.pyi

The build runs it; nothing that it writes is committed. The top level needs no stub: its functions stand in __init__.py as they are."""

import ast
import sys
import textwrap
from pathlib import Path

from ._describe import NAMES, document, signature
from ._library import library
from ._manifest import Op


def stub(init: Path, rooms: list[Path], ops: list[Op]) -> str:
    """What `init` shows, less its inner life; the classes of the rooms' modules; a function for every op."""
    module = ast.parse(init.read_text())
    parts = [f'"""{ast.get_docstring(module, clean=False)}"""\n', NAMES, "from torch import Tensor\n"]
    functions = []
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            parts.append(_shown(f".{node.module}", [a.name for a in node.names]))
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            functions.append(_function(node.name, ast.unparse(node.args), ast.unparse(node.returns), ast.get_docstring(node)))
    for room in rooms:
        parts.append(_shown(f"..rooms.{room.stem}", _all(room)))
    functions += [f"def {op.name}{signature(op)}:\n{_quoted(document(op))}    ...\n" for op in ops if op.backward_of is None]
    return "".join(parts) + "\n" + "\n".join(functions)


def _shown(module: str, names: list[str]) -> str:
    names = [f"{name} as {name}" for name in names if not name.startswith("_")]  # `as`: a stub's imports are private without
    return f"from {module} import {', '.join(names)}\n" if names else ""


def _all(file: Path) -> list[str]:
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]:
            return ast.literal_eval(node.value)
    return []


def _function(name: str, arguments: str, result: str, text: str | None) -> str:
    return f"def {name}({arguments}) -> {result}:\n{_quoted(text or '')}    ...\n"


def _quoted(text: str) -> str:
    return textwrap.indent(f'r"""{text}"""\n', "    ")


def main(folder: Path) -> None:
    place = folder / "torch" / "__init__.pyi"
    place.unlink(missing_ok=True)  # it may be a link
    place.write_text(stub(folder / "torch" / "__init__.py", sorted((folder / "rooms").glob("*_torch.py")), library.ops()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
