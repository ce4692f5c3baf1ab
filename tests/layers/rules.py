"""The house rules that a compiler does not check: who may include whom, no op named outside its room, how long files and rooms get.

`breaches(root)` returns sentences "file:line: what is wrong (the rule)"; the tests run it on this tree and on trees with a planted fault.
"""
import re
from pathlib import Path

LINES_PER_FILE = 400
FILES_PER_ROOM = 14
MORE_FILES = {"rms_norm": 16}  # docs/adr/0005
SOURCES = (".h", ".cpp", ".inc", ".cuh", ".c", ".py", ".cmake", ".sh")

# Layer: the folders whose headers its files may include. A room is a layer of its own, "kw/ops/<room>".
MAY_INCLUDE = {
    "kw/core": ("kw/core",),
    "kw/device": ("kw/device",),
    "kw/cpu": ("kw/cpu", "kw/core"),
    "kw/runtime": ("kw/runtime", "kw/core"),
    "kw/ops": ("kw/core", "kw/runtime", "kw/cpu"),
    "faces": ("faces", "kw/core", "kw/runtime", "kw/cpu"),  # cpu: the number of threads
    "tools": ("tools", "testing", "kw/core", "kw/runtime", "kw/cpu", "emulator/kwemu.h"),
    "testing": ("testing", "kw/core", "emulator/kwemu.h"),
    "emulator": ("emulator",),
}
STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits clocale cmath
compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar
cwchar cwctype deque exception execution filesystem forward_list fstream functional future initializer_list iomanip ios iosfwd
iostream istream iterator latch limits list locale map memory memory_resource mutex new numbers numeric optional ostream queue
random ranges ratio regex scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token
streambuf string string_view system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray
variant vector version assert.h ctype.h errno.h float.h inttypes.h limits.h math.h stdarg.h stdbool.h stddef.h stdint.h stdio.h
stdlib.h string.h time.h
""".split())

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of(path: str) -> str | None:
    if path.startswith("kw/ops/"):
        return "/".join(path.split("/")[:3])
    return next((layer for layer in MAY_INCLUDE if path.startswith(layer + "/")), None)


def include_breach(path: str, angle: bool, header: str) -> str | None:
    """What is wrong with this include of the file `path`, or None."""
    layer = layer_of(path)
    if layer is None:
        return None
    device_code = path.endswith(".cuh")
    if angle:
        if layer == "kw/core" and header not in STANDARD:
            return "core includes the standard library only"
        if device_code and not path.startswith("emulator/"):
            return "device code includes no header of the host: NVRTC has none, and compiles faster without"
        return None
    if device_code and not path.startswith("emulator/"):
        if header.startswith("kw/device/") or (layer.startswith("kw/ops/") and header.startswith(layer + "/") and header.endswith(".cuh")):
            return None
        return "device code includes kw/device and its own room's .cuh files only"
    if layer.startswith("kw/ops/"):
        room = layer.split("/")[2]
        if header.startswith(layer + "/"):
            return None
        if path == f"{layer}/{room}.h" and header == "faces/c/typed.h":
            return None  # the typed C++ call is the op's own C++ face
        other = re.fullmatch(r"kw/ops/(\w+)/(\w+)\.h", header)
        if other and other[1] == other[2]:
            return None
        if path.endswith("_test.cpp") and header.startswith(("testing/", "tests/cpp/")):
            return None
        allowed = MAY_INCLUDE["kw/ops"]
    else:
        allowed = MAY_INCLUDE[layer]
    if any(header == folder or header.startswith(folder + "/") for folder in allowed):
        return None
    if layer == "kw/core" and header == "kw/device/params.cuh":
        return None  # what host and device share: where the rows of a tensor lie
    if header.startswith("kw/ops/"):
        return "no layer knows a room"
    return f"{layer} includes {', '.join(allowed)} only, by paths from the root of the tree"


def op_names(root: Path) -> set[str]:
    """The ops that the contracts below kw/ops declare, and the rooms' own names."""
    names = {room.name for room in (root / "kw/ops").glob("*") if room.is_dir()}
    for file in (root / "kw/ops").glob("*/*.cpp"):
        for text in re.findall(r'R"(\w*)\((.*?)\)\1"', file.read_text(), re.S):
            if contract := re.match(r"\s*([a-z_]\w*)\s*\(.*->", text[1], re.S):
                names.add(contract[1])
    return names


def sources(root: Path, *folders: str):
    for folder in folders:
        for file in sorted((root / folder).rglob("*")):
            if file.is_file() and file.suffix in SOURCES and "__pycache__" not in file.parts:
                yield file, file.relative_to(root).as_posix()


def breaches(root: Path) -> list[str]:
    found = []
    for file, path in sources(root, *MAY_INCLUDE):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if match := INCLUDE.match(line):
                if wrong := include_breach(path, match[1] == "<", match[2]):
                    found.append(f"{path}:{number}: includes {match[2]} ({wrong})")
    names = op_names(root)
    word = re.compile(r"(?<![A-Za-z0-9_])(" + "|".join(sorted(names, key=len, reverse=True)) + r")(?![A-Za-z0-9_])")
    for file, path in sources(root, "faces", "tools", "python") if names else ():
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if match := word.search(line):
                found.append(f"{path}:{number}: names the op {match[1]} (faces, tools and python are loops over the registry)")
    everywhere = ("kw", "emulator", "faces", "python", "tools", "testing", "tests", "benchmarks", "examples", "scripts", "cmake")
    for file, path in sources(root, *everywhere):
        if (lines := file.read_text().count("\n")) > LINES_PER_FILE:
            found.append(f"{path}:{lines}: has {lines} lines (a file has at most {LINES_PER_FILE})")
    for room in sorted((root / "kw/ops").glob("*/")):
        count = sum(1 for file in room.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        most = MORE_FILES.get(room.name, FILES_PER_ROOM)
        if count > most:
            found.append(f"kw/ops/{room.name}: has {count} files (a room has at most {most})")
    return found
