"""``rosrun iter_runner report``: what happened in a session, from its folder on disk."""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path
from typing import Optional, Sequence

from iter_runner.study.report import summarise_session, to_json
from iter_runner.study.sessions import SessionError, find_session


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Prints a session's report. Returns the exit code: 0, 1 for a session that can't be read, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="report",
        description="What happened in a session: outcome, waits on the human, moves, robot idle, RAD.",
        epilog="Sessions are in $ITER_RUNNER_SESSIONS, or ~/.ros/iter_runner/sessions.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("session", nargs="?", help="its name, the beginning of its name, or its folder")
    which.add_argument("--last", action="store_true", help="the newest session (the default)")
    parser.add_argument("--json", action="store_true", help="for programs: one JSON object, seconds and metres")
    parser.add_argument("--verbose", action="store_true", help="every move and every ignored press")
    parser.add_argument("--figure", metavar="FILE", type=Path, help="also draws the run's timeline (.png, .svg, .pdf)")
    options = parser.parse_args(arguments)
    if options.figure is not None and (not options.figure.suffix or options.figure.is_dir()):
        parser.error(f"--figure {options.figure}: expected a picture's file, such as timeline.png, .svg or .pdf")
    try:
        summary = summarise_session(find_session(options.session))
        if options.figure is not None:
            _draw(summary, options.figure)
        if options.json:
            print(to_json(summary))
        else:
            from iter_runner.study.report_view import print_report

            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(errors="replace")  # a terminal without Unicode shows the rest all the same
            print_report(summary, verbose=options.verbose)
        sys.stdout.flush()
    except SessionError as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # The summary passes on what stands in the journal, and that may be anything once somebody has edited it.
        journal = find_session(options.session).journal
        what = f"{type(error).__name__}: {error}"
        print(f"report: {journal} holds a field that no run writes ({what}): was it edited?", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `report | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _draw(summary: dict, file: Path) -> None:
    from iter_runner.study.report_view import draw_timeline

    try:
        draw_timeline(summary, file)
    except (OSError, ValueError) as error:
        raise SessionError(f"can't draw the timeline into {file}: {error}") from error
