"""One number for all the sources that the tests cover, so that a committed result says which tree it belongs to."""
import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COVERED = ("kw", "emulator", "faces", "python", "tools", "testing", "tests", "examples", "scripts", "cmake")
FILES = ("CMakeLists.txt", "Makefile", "constraints.txt", "pyproject.toml")


def digest() -> str:
    """SHA-256 over names and contents, in order of name. Documentation and results are left out."""
    total = hashlib.sha256()
    found = [f for folder in COVERED for f in (ROOT / folder).rglob("*") if f.is_file()] + [ROOT / f for f in FILES]
    for file in sorted(found):
        if "__pycache__" in file.parts or file.suffix in (".md", ".json", ".pyc"):
            continue
        total.update(f"{file.relative_to(ROOT).as_posix()}\0{file.stat().st_size}\0".encode())
        total.update(file.read_bytes())
    return total.hexdigest()


if __name__ == "__main__":
    print(digest())
