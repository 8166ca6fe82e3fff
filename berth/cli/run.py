"""``berth run``: run components in this process.

The options come from settings models: the process's own, and those of the components that the command line names.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from berth.api.text import printable
from berth.runtime.component import Component, UnknownComponentError, available_components, load_component
from berth.runtime.logs import configure_logs
from berth.runtime.process import SETUP_ERRORS, Selected, run_components
from berth.runtime.settings import Option, RunSettings, SettingsError, options_of, settings_from

EXIT_GRACE = 1.0
"""Seconds that tasks left over may take to end after the components have stopped."""
_BAD_INPUT = 2

_DESCRIPTION = """\
Run one or several components until SIGTERM or Ctrl-C.

Exit status: 0 stopped by a signal, 1 a component failed or lost its leadership, 2 wrong options or environment.
"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, like every other command, also that help cannot be written."""

    def error(self, message: str) -> NoReturn:
        raise SettingsError(message)

    def print_help(self, file: Any = None) -> None:
        # The library's own keeps to itself that a disk is full.
        print(self.format_help(), end="", file=file, flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run components (controllers, agents) until stopped; the exit status. What is wrong is printed."""
    try:
        components, settings = parse(arguments)
        configure_logs(level=settings.log_level, as_json=settings.log_format == "json")
        return asyncio.run(_run(components, settings))
    except (UnknownComponentError, SettingsError, *SETUP_ERRORS) as error:
        _say(error)
        return _BAD_INPUT


def _say(problem: object) -> None:
    print(printable(f"berth run: {problem}"), file=sys.stderr)


def parse(arguments: Sequence[str]) -> tuple[list[Selected], RunSettings]:
    """The components to run and the settings of the process.

    Raises:
        UnknownComponentError: a component is not installed or cannot be imported, or none is named.
        SettingsError: an option does not exist, has no value or one that cannot be right.
        SystemExit: help was asked for and printed.
    """
    installed = sorted(available_components())
    # Known before the rest, for their options are part of the grammar; help is about all unless some are named.
    kinds = {name: load_component(name) for name in installed if name in arguments}
    if not kinds and not {"-h", "--help"}.isdisjoint(arguments):
        kinds = _importable(installed)
    known, unknown = _parser(installed, kinds).parse_known_intermixed_args(arguments)
    given = vars(known)
    names = list(dict.fromkeys(given.pop("components")))
    if unknown:
        raise SettingsError(_unknown_option(unknown[0], installed))
    if not names:
        raise UnknownComponentError(f"no component named; choose from: {', '.join(installed)}")
    selected = []
    for name in names:
        kind = load_component(name)
        selected.append(Selected(name, kind, settings_from(kind.Settings, name, given)))
    return selected, settings_from(RunSettings, "", given)


def _parser(installed: Iterable[str], kinds: dict[str, type[Component]]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="berth run",
        usage="berth run COMPONENT... [OPTIONS]",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("components", metavar="COMPONENT", nargs="*", default=[], help=f"any of {', '.join(installed)}")
    for option in options_of(RunSettings):
        _add(parser.add_argument, option)
    for name, kind in kinds.items():
        options = options_of(kind.Settings, name)
        if options:
            section = parser.add_argument_group(f"options of {name}")
            for option in options:
                _add(section.add_argument, option)
    return parser


def _add(add_argument: Callable[..., argparse.Action], option: Option) -> None:
    default = f" Default: {option.default}." if option.default else ""
    texts: dict[str, Any] = {"dest": option.flag, "help": f"{option.description}{default}".replace("%", "%%")}
    if option.metavar:
        add_argument(option.flag, metavar=option.metavar, **texts)
    else:
        add_argument(option.flag, action=argparse.BooleanOptionalAction, **texts)


def _importable(names: Iterable[str]) -> dict[str, type[Component]]:
    kinds: dict[str, type[Component]] = {}
    for name in names:
        try:
            kinds[name] = load_component(name)
        except UnknownComponentError as error:
            _say(error)
    return kinds


def _unknown_option(argument: str, installed: Iterable[str]) -> str:
    flag = argument.partition("=")[0]
    for name, kind in _importable(installed).items():
        if any(option.flag == flag for option in options_of(kind.Settings, name)):
            return f"{flag} is an option of {name}, which is not among the components to run"
    return f"no such option: {flag}; `berth run --help` lists them"


async def _run(components: Sequence[Selected], settings: RunSettings) -> int:
    code = await run_components(components, settings)
    # asyncio waits for every task that is left; one that ignores its cancellation must not keep a process
    # alive that has lost its leadership.
    exit_anyway = threading.Timer(EXIT_GRACE, os._exit, (code or 1,))
    exit_anyway.daemon = True
    exit_anyway.start()
    return code
