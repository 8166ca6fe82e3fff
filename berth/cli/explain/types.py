"""What is to be explained, named as kubectl has it: ``TYPE NAME`` or ``TYPE/NAME``, with short names and plurals."""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperGroup

COMMANDS: Final = {
    "po": "pod",
    "pods": "pod",
    "ag": "appgroup",
    "appgroups": "appgroup",
    "no": "node",
    "nodes": "node",
    "lp": "latencypolicy",
    "latencypolicies": "latencypolicy",
}
"""Plurals and short names of types; each type is a command."""


class TypeAndName(TyperGroup):
    """Commands that are types, of which the name of an object follows."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Let options stand before the type too; all but help have a value, which may be attached to them."""
        place = 0
        while place < len(args) and args[place].startswith("-") and args[place] not in ctx.help_option_names:
            name = args[place]
            attached = "=" in name if name.startswith("--") else len(name) > 2
            place += 1 if attached else 2
        return list(super().parse_args(ctx, [*args[place:], *args[:place]]))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Take ``TYPE/NAME`` apart; the API group that ``kubectl get -o name`` writes behind the type is left out."""
        kind, slash, name = args[0].partition("/")
        kind = kind.partition(".")[0].lower()
        command = COMMANDS.get(kind, kind)
        if command not in self.commands:
            ctx.fail(f"there is no type {kind!r} to explain; choose from: {', '.join(self.commands)}")
        return super().resolve_command(ctx, [command, *([name] if slash and name else []), *args[1:]])
