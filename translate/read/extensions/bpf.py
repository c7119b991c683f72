"""``-m bpf``: programs of classic BPF."""

from __future__ import annotations

from typing import Final

from translate.ir import BytecodeTest, Test
from translate.ir.bytecode import ProgramError, read_bytecode
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import NotModelledError, OptionError

__all__ = ["BPF"]


def _bpf(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--bytecode", "bpf")
    try:
        program = read_bytecode(option.arguments[0])
    except ProgramError as e:
        if e.unknown:
            raise NotModelledError(f"a program {e}", option=index) from None
        hint = "such as 4,48 0 0 9,21 0 1 6,6 0 0 1,6 0 0 0"
        raise OptionError(f"--bytecode: {e}", option=index, hint=hint) from None
    return (BytecodeTest(program=program),)


BPF: Final = MatchExtension(
    name="bpf",
    options=(
        OptionSpec(name="--bytecode"),
        OptionSpec(
            name="--object-pinned",
            refused="nf_tables runs no BPF program, and the tc program none but itself",
            kind="bpf",
        ),
    ),
    meaning=_bpf,
)
"""``-m bpf`` (``xt_bpf``)."""
