"""Make the wheel of the package blink, with libblink in it.

usage: wheel.py VERSION LIBRARY FOLDER [LICENSE...]

The platform is that of the library: manylinux_2_N if it needs nothing but glibc, no newer than 2.N; else linux. The
same input gives the same bytes. Prints the name of the file.
"""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
NAME = "libblink"
GLIBC = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+")

METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: Collective communication by the best schedules for a machine; a backend of torch.distributed
License: Apache-2.0
Requires-Python: >=3.10
Provides-Extra: torch
Requires-Dist: torch; extra == "torch"
"""
WHEEL = """\
Wheel-Version: 1.0
Generator: wheel.py
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""
ENTRY_POINTS = """\
[torch.distributed.backends]
blink = blink.torch:register
"""


def platform_of(library: Path) -> str:
    """The platform tag of an ELF file."""
    machine = {62: "x86_64", 183: "aarch64"}[int.from_bytes(library.read_bytes()[18:20], "little")]
    text = subprocess.run(["objdump", "-p", library], check=True, capture_output=True, text=True).stdout
    others = [name for name in re.findall(r"NEEDED +(\S+)", text) if not GLIBC.fullmatch(name)]
    if others:
        return f"linux_{machine}"
    newest = max(int(minor) for minor in re.findall(r"\bGLIBC_2\.(\d+)", text))
    return f"manylinux_2_{newest}_{machine}"


def files_of(version: str, library: Path, licenses: list[Path]) -> dict[str, bytes]:
    info = f"{NAME}-{version}.dist-info"
    files = {
        str(path.relative_to(HERE)): path.read_bytes()
        for path in (HERE / "blink").rglob("*")
        if path.suffix == ".py" or path.name == "py.typed"
    }
    files[f"blink/{library.name}"] = library.read_bytes()
    files[f"{info}/METADATA"] = METADATA.format(name=NAME, version=version).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(platform=platform_of(library)).encode()
    files[f"{info}/entry_points.txt"] = ENTRY_POINTS.encode()
    for path in licenses:
        files[f"{info}/licenses/{path.parent.name}/{path.name}"] = path.read_bytes()
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD").encode()
    return files


def record(files: dict[str, bytes], itself: str) -> str:
    lines = []
    for name, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join(lines) + f"{itself},,\n"


def main(version: str, library: str, folder: str, *licenses: str) -> None:
    files = files_of(version, Path(library), [Path(path) for path in licenses])
    target = Path(folder) / f"{NAME}-{version}-py3-none-{platform_of(Path(library))}.whl"
    new = target.with_suffix(".new")
    with zipfile.ZipFile(new, "w") as archive:
        for name, data in sorted(files.items(), key=lambda item: (".dist-info/" in item[0], item[0])):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            archive.writestr(entry, data, compresslevel=9)
    new.replace(target)
    print(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
