"""From a file or a text to a JSON document, with whatever is in them."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, NoReturn, Optional, Set, Tuple, Union

from iter_runner.plan.model import PlanError, PlanFault
from iter_runner.plan.registry import near_matches

SIZE_LIMIT = 32 * 1024 * 1024
"""The longest plan that is read, bytes; the full house of the original study is some 50 kB."""
DEPTH_LIMIT = 64
"""The deepest nesting of lists and objects in a plan."""


def escape(key: str) -> str:
    """A key as a part of a JSON pointer (RFC 6901)."""
    return _printable(key).replace("~", "~0").replace("/", "~1")


def describe(value: Any) -> str:
    """A JSON value for a message, cut short."""
    if isinstance(value, dict):
        keys = [str(key) for key in value][:6]
        return "an object with " + ", ".join(keys) + (", …" if len(value) > 6 else "") if keys else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    text = (
        json.dumps(value, ensure_ascii=False) if value is None or isinstance(value, (str, int, float)) else repr(value)
    )
    text = _printable(text)
    return text if len(text) <= 60 else text[:57] + '…"'


def read_source(source: Union[str, Path]) -> Tuple[str, Optional[Path]]:
    """The text of a plan, and the file that it came from.

    Args:
        source: JSON text (it begins with a brace or bracket, or has several lines), the path of a file, or the name of
            a file in the package's ``plans/``, with or without ``.json``.

    Raises:
        PlanError: no such file, not a file, not UTF-8, too long.
    """
    if isinstance(source, str) and _is_text(source):
        if len(source) > SIZE_LIMIT:
            _refuse(f"{len(source) / 1e6:.0f} MB of text", f"at most {SIZE_LIMIT // 2**20} MiB")
        return source, None
    path = find_plan(source)
    try:
        if not path.is_file():
            _refuse(
                f"{path}, which is {'a directory' if path.is_dir() else 'not a regular file'}", "a plan's JSON file"
            )
        size = path.stat().st_size
        if size > SIZE_LIMIT:
            _refuse(f"{path} of {size / 1e6:.0f} MB", f"at most {SIZE_LIMIT // 2**20} MiB")
        content = path.read_bytes()
    except OSError as error:
        _refuse(f"{path}, which can't be read: {error.strerror}", "a readable file")
    try:
        return content.decode("utf-8-sig"), path
    except UnicodeDecodeError as error:
        _refuse(f"{path}, which is not UTF-8 text (byte {error.start})", "JSON in UTF-8")


def find_plan(source: Union[str, Path]) -> Path:
    """The file that a path or a name in ``plans/`` means.

    Raises:
        PlanError: there is none; names the near matches.
    """
    from iter_runner.package import package_folder

    text = str(source)
    try:
        path = Path(text).expanduser()
        folder = package_folder() / "plans"
        for candidate in (path, folder / text, folder / (text + ".json")):
            if candidate.is_file():
                return candidate
        if path.exists():
            return path  # a directory or the like, which the reader names
        names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*.json") if ".schema" not in file.name)
    except (OSError, ValueError, RuntimeError) as error:
        _refuse(f"{describe(text)}, which can't be a path ({error})", "JSON text, or the path of a plan")
    matches = near_matches(text if text.endswith(".json") else text + ".json", names)
    hint = f"; perhaps {' or '.join(matches)}" if matches else ""
    _refuse(
        f"no file {describe(text)}, neither from {Path.cwd()} nor in {folder}",
        f"JSON text, the path of a plan, or a plan's name ({', '.join(names) or 'there are none'}){hint}",
    )


def parse(text: str) -> Tuple[Any, List[PlanFault]]:
    """The JSON document of a text, and what is wrong with it as such: keys given twice, numbers that are not finite.

    Raises:
        PlanError: not JSON, or nested too deep.
    """
    if not text.strip():
        _refuse("nothing (the plan is empty)", 'a plan: {"version": "1.0.0", "task": [...]}')
    duplicates: Dict[int, Set[str]] = {}
    objects: List[Any] = []  # keeps every object alive, so that the ids in duplicates stay unique

    def collect(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            duplicates[id(result)] = {key for key, count in counts.items() if count > 1}
            objects.append(result)
        return result

    try:
        document = json.loads(text, object_pairs_hook=collect)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20].strip()
        _refuse(
            f"no JSON: {error.msg} at line {error.lineno}, column {error.colno}, near {describe(near)}", "valid JSON"
        )
    except RecursionError:
        _refuse("lists or objects nested thousands deep", f"at most {DEPTH_LIMIT} levels")
    except ValueError as error:  # whole numbers of thousands of digits
        _refuse(f"no JSON that can be read: {error}", "valid JSON")
    return document, _structural_faults(document, duplicates)


def _structural_faults(document: Any, duplicates: Dict[int, Set[str]]) -> List[PlanFault]:
    """Walks the document without recursion; faults in its order, PlanError where it is too deep."""
    faults: List[PlanFault] = []
    stack: List[Tuple[Any, str, int]] = [(document, "", 0)]
    while stack:
        value, pointer, depth = stack.pop()
        if isinstance(value, (dict, list)):
            if depth >= DEPTH_LIMIT:
                raise PlanError([PlanFault(pointer, f"nesting deeper than {DEPTH_LIMIT} levels", "a flatter plan")])
            for key in sorted(duplicates.get(id(value), ())):
                faults.append(
                    PlanFault(f"{pointer}/{escape(key)}", f"the key {describe(key)} more than once", "every key once")
                )
            if isinstance(value, dict) and not all(map(_is_unicode, value)):
                faults.append(PlanFault(pointer, "a key with half of a surrogate pair", "Unicode text"))
            items = value.items() if isinstance(value, dict) else enumerate(value)
            stack.extend((item, f"{pointer}/{escape(str(key))}", depth + 1) for key, item in reversed(list(items)))
        elif isinstance(value, float) and not math.isfinite(value):
            faults.append(PlanFault(pointer, describe(value), "a finite number"))
        elif isinstance(value, str) and not _is_unicode(value):
            faults.append(PlanFault(pointer, "text with half of a surrogate pair", "Unicode text"))
        elif isinstance(value, int) and abs(value) > 10**300:
            faults.append(PlanFault(pointer, "a whole number of more than 300 digits", "a smaller number"))
    return faults


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _is_text(source: str) -> bool:
    start = source.lstrip("\ufeff \t\r\n")[:1]
    return start in ("{", "[", "") or "\n" in source.strip() or len(source) > 4096


def _refuse(found: str, expected: str) -> NoReturn:
    raise PlanError([PlanFault("", found, expected)])
