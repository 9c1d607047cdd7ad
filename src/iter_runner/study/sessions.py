"""Sessions: one folder a run, with its journal, its plan as it was run, and its commanded joint paths.

    <UTC time>_<study>_<participant_id>_<condition>_<4 hex>/
        journal.jsonl     one event a line, in order; the first is run_started
        plan.json         the plan as it was run
        paths/<n>.npz     a move's commanded path: positions (N, n) rad, times (N,) s, joint_names (n,)
        report.json       the summary, written when the run is over

Nothing here needs ROS: folders of sessions can be read on any machine.
"""

from __future__ import annotations

import os
import re
import secrets
import zipfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.events import Event, EventKind

JOURNAL = "journal.jsonl"
PLAN = "plan.json"
PATHS = "paths"
REPORT = "report.json"

Array = NDArray[np.float64]

_UNSAFE = re.compile(r"[^A-Za-z0-9.-]+")


class SessionError(ValueError):
    """A session can't be created, found or read; the message says which and what to do."""


@dataclass(frozen=True)
class Session:
    """A session's folder."""

    directory: Path

    @property
    def name(self) -> str:
        """The session's identifier, the name of its folder."""
        return self.directory.name

    @property
    def journal(self) -> Path:
        """The file of events."""
        return self.directory / JOURNAL

    @property
    def plan(self) -> Path:
        """The plan as it was run."""
        return self.directory / PLAN

    @property
    def paths(self) -> Path:
        """The folder of commanded joint paths."""
        return self.directory / PATHS

    @property
    def report(self) -> Path:
        """The summary, where the run is over."""
        return self.directory / REPORT


def sessions_folder() -> Path:
    """Where sessions are kept: ``$ITER_RUNNER_SESSIONS``, or ``~/.ros/iter_runner/sessions``."""
    chosen = os.environ.get("ITER_RUNNER_SESSIONS", "")
    return Path(chosen).expanduser() if chosen else Path.home() / ".ros" / "iter_runner" / "sessions"


def create_session(
    plan_json: str,
    study: str = "",
    participant_id: str = "",
    condition: str = "",
    folder: Optional[Path] = None,
    now: Optional[datetime] = None,
) -> Session:
    """Makes a new session's folder with its plan in it, on disk when this returns.

    Args:
        plan_json: the plan as it will be run.
        study, participant_id, condition: what the record is filed under; characters that have no place in a folder's
            name become ``-`` in it (the journal keeps them as given).
        folder: in place of :func:`sessions_folder`.
        now: in place of the present moment, for tests.

    Raises:
        SessionError: the folder can't be made or written to.
    """
    parent = folder if folder is not None else sessions_folder()
    moment = (now or datetime.now(timezone.utc)).astimezone(timezone.utc)
    stamp = moment.strftime("%Y%m%dT%H%M%S.") + f"{moment.microsecond // 1000:03d}Z"
    labels = [label for label in (_label(part) for part in (study, participant_id, condition)) if label]
    directory = parent / "_".join([stamp, *labels, secrets.token_hex(2)])
    session = Session(directory)
    try:
        session.paths.mkdir(parents=True)
        write_durably(session.plan, plan_json.encode("utf-8"))
        sync_folder(directory)
        sync_folder(parent)
    except OSError as error:
        raise SessionError(
            f"can't keep a record in {parent}: {error.strerror or error}; nothing was started. "
            "Make room or choose a folder that can be written to (environment variable ITER_RUNNER_SESSIONS)"
        ) from error
    return session


def find_session(name: Optional[str] = None, folder: Optional[Path] = None) -> Session:
    """The session of that name (or the start of one), or at that path; the newest one where no name is given.

    Raises:
        SessionError: there is none, or the beginning of a name fits several.
    """
    parent = folder if folder is not None else sessions_folder()
    if name:
        for path in (Path(name).expanduser(), parent / name):
            if (path / JOURNAL).is_file():
                return Session(path.resolve())
    found = [session for session in list_sessions(parent) if not name or session.name.startswith(name)]
    if not found:
        what = f"no session {name!r}" if name else "no session"
        raise SessionError(f"{what} in {parent}; sessions are made by runs, `ls {parent}` shows what is there")
    if name and len(found) > 1:
        raise SessionError(f"{name!r} fits {len(found)} sessions: " + ", ".join(session.name for session in found))
    return found[-1]


def list_sessions(folder: Optional[Path] = None) -> List[Session]:
    """Every session that has a journal, oldest first."""
    parent = folder if folder is not None else sessions_folder()
    try:
        return [Session(path.parent) for path in sorted(parent.glob(f"*/{JOURNAL}"))]
    except OSError:
        return []


def read_journal(path: Path) -> List[Event]:
    """The events in a journal (or in a session's folder), in order.

    An end that was cut short or torn, as a power cut leaves it, is left out.

    Raises:
        SessionError: the file can't be read, or whole events follow on a damaged line.
    """
    if path.is_dir():
        path = path / JOURNAL
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise SessionError(f"can't read {path}: {error.strerror or error}") from error
    lines.pop()  # after the last line end: nothing, or the beginning of a write
    events = []
    broken: Optional[str] = None
    for number, line in enumerate(lines, start=1):
        try:
            event = Event.from_json(line.decode("utf-8"))
        except ValueError as error:
            broken = broken or f"line {number}: {error}"
            continue
        if broken:  # damage in the middle, not the torn end that a power cut leaves
            raise SessionError(f"{path}, {broken}")
        events.append(event)
    return events


def save_path(session: Session, name: str, positions: Array, times: Array, joint_names: Sequence[str]) -> str:
    """Keeps a move's commanded path beside the journal; on disk when this returns.

    Args:
        name: the file's, without its extension.
        positions: (N, n) rad, columns in the order of ``joint_names``.
        times: (N,) s from the start of the motion.

    Returns:
        the file, relative to the session's folder.

    Raises:
        OSError: it can't be written.
    """
    file = session.paths / f"{name}.npz"
    with file.open("wb") as stream:
        np.savez(stream, positions=positions, times=times, joint_names=np.asarray(joint_names))
        stream.flush()
        os.fsync(stream.fileno())
    sync_folder(session.paths)
    return f"{PATHS}/{file.name}"


def load_path(file: Path) -> Tuple[Array, Array]:
    """A commanded path as :func:`save_path` kept it: positions (N, n) rad and times (N,) s.

    Raises:
        SessionError: it can't be read.
    """
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return arrays["positions"], arrays["times"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise SessionError(f"can't read the commanded path {file}: {error}") from error


def path_joints(file: Path) -> List[str]:
    """The joints' names that a commanded path's columns belong to.

    Raises:
        SessionError: it can't be read.
    """
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return [str(name) for name in arrays["joint_names"]]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise SessionError(f"can't read the commanded path {file}: {error}") from error


def last_commanded_joints(session: Session) -> Optional[Array]:
    """Where the session's last finished move commanded the arm to, (n,) rad; None where it has no move.

    A path that is on disk without its event counts too: the run was killed between the two.
    """
    files = sorted(session.paths.glob("*.npz"), key=lambda file: file.stat().st_mtime_ns)
    for file in reversed(files):
        try:
            return np.asarray(load_path(file)[0][-1], dtype=np.float64)
        except (SessionError, IndexError):
            continue
    return None


def step_to_resume(session: Session) -> Optional[int]:
    """The index of the step at which a run that ended early goes on; None where it finished or never began."""
    step: Optional[int] = None
    for event in read_journal(session.journal):
        if event.kind is EventKind.RUN_STARTED:
            step = int(event.data.get("first_step", 0))
        elif event.kind is EventKind.STEP_STARTED:
            step = event.step
        elif event.kind is EventKind.STEP_FINISHED:
            step = event.step + 1
        elif event.kind is EventKind.RUN_FINISHED and event.data.get("outcome") == "finished":
            return None
    return step


def write_durably(file: Path, content: bytes) -> None:
    """Writes a file whole or not at all: through a temporary name, synced, then renamed.

    Raises:
        OSError: it can't be written.
    """
    partial = file.with_name(file.name + ".part")
    with partial.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(file)


def sync_folder(folder: Path) -> None:
    """Brings a folder's entries to the disk, so that a new file is found after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _label(text: str) -> str:
    return _UNSAFE.sub("-", text.strip()).strip("-.")[:40]
