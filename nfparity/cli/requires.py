"""``nfparity requires``: the kernel modules that rules need today and after a migration."""

from __future__ import annotations

import argparse
import json

from backends.model.variant import Variant, variant_of
from harness.counted import counted
from harness.files.userfiles import read_text
from harness.status import DIFFERENCES, DONE, NOT_TESTED
from nfparity.cli.options import add_format, add_rules, input_options, print_unknown
from nfparity.inputs.rules import load_rules
from nfparity.requires import (
    Modules,
    Need,
    Presence,
    listed_modules,
    platform_modules,
    platform_names,
    snapshot_modules,
)
from nfparity.snapshot import load_snapshot
from nfparity.snapshot.archive import is_snapshot
from translate.errors import InputError, Refusal
from translate.ir import Ruleset

_EXAMPLE = """\
example:
  nfparity requires rules.iptables-save --on rhel-10
  find /lib/modules/$(uname -r) -name '*.ko*' | nfparity requires rules.iptables-save --modules -

Without a machine, the modules are listed. A snapshot has the modules of its node (nfparity capture), and the
expressions of nftables that its kernel accepts. It is compared with these unless another machine is given.

exit status: 0 if the machine has every module, 1 if it lacks one, 4 if this is not known of one
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_rules(parser)
    machine = parser.add_mutually_exclusive_group()
    machine.add_argument(
        "--on", metavar="PLATFORM", help=f"the machine: one of {', '.join(platform_names())}"
    )
    machine.add_argument(
        "--modules",
        metavar="FILE",
        help="the machine: a list of its modules, such as modules.order and modules.builtin, or lsmod",
    )
    add_format(parser, "text", "json")


def run(arguments: argparse.Namespace) -> int:
    """Print the modules, and those that the machine lacks."""
    from nfparity.report.requires import requires_json, requires_lines

    if arguments.rules == arguments.modules == "-":
        raise InputError("RULES and --modules cannot both be standard input")
    ruleset = load_rules(arguments.rules, input_options(arguments))
    print_unknown(ruleset)
    machine = _machine(arguments)
    variant = _variant(arguments, ruleset)
    needs, refusals = _needs(ruleset, variant)
    if arguments.format == "json":
        data = requires_json(needs, machine)
        data["variant"] = variant.value
        data["refused_lines"] = [refusal.origin.line for refusal in refusals]
        print(json.dumps(data, indent=2))
    else:
        print(f"IPv{ruleset.family.version} rules of iptables-{variant.value}")
        for line in requires_lines(needs, machine):
            print(line)
        if refusals:
            rules = counted(len(refusals), "rule")
            print(f"not translated, and so not counted: {rules} (nfparity translate lists them)")
    presences = set() if machine is None else {machine.presence(need.module) for need in needs}
    if presences & {Presence.ABSENT, Presence.OPTIONAL}:
        return DIFFERENCES
    return NOT_TESTED if Presence.UNKNOWN in presences else DONE


def _needs(ruleset: Ruleset, variant: Variant) -> tuple[tuple[Need, ...], tuple[Refusal, ...]]:
    """Return all needs, and the refusals of the rules that have no translation."""
    from nfparity.requires import kube_proxy_needs, rules_needs, translation_needs
    from translate.condense import emit_nft, lower
    from translate.gaps import translate_with_gaps

    output, refusals = translate_with_gaps(ruleset, lambda rules: emit_nft(lower(rules, level=1)))
    return (
        *rules_needs(ruleset, variant),
        *translation_needs(output.text),
        *kube_proxy_needs((ruleset.family,)),
    ), refusals


def _machine(arguments: argparse.Namespace) -> Modules | None:
    """Return the machine that was given, else that of the snapshot if it tells of its modules."""
    if arguments.on is not None:
        return platform_modules(arguments.on)
    if arguments.modules is not None:
        return listed_modules(read_text(arguments.modules), name=arguments.modules)
    if not is_snapshot(arguments.rules):
        return None
    return snapshot_modules(load_snapshot(arguments.rules).meta, name=arguments.rules)


def _variant(arguments: argparse.Namespace, ruleset: Ruleset) -> Variant:
    """Return the variant of the rules: that of the snapshot, else by the comment before their first table."""
    if arguments.variant is not None:
        return Variant(arguments.variant)
    if is_snapshot(arguments.rules):
        snapshot = load_snapshot(arguments.rules)
        rules = snapshot.loaded_rules(arguments.family or snapshot.main_family)
        return next(variant for (variant, _), read in snapshot.rules.items() if read is rules)
    return variant_of("\n".join(ruleset.tables[0].preamble).encode())
