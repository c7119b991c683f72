"""Actions as C, inside the function of their chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from translate.bpf.chains.code import NO_NEEDS, Code, Feature, Needs, Variable
from translate.bpf.chains.context import Context
from translate.bpf.chains.hashmarks import hash_mark_code
from translate.bpf.chains.numbers import NumberText, as_literal
from translate.bpf.chains.prefixes import prefix_code
from translate.bpf.layout.tables import RuntimePart
from translate.bpf.refusals import CannotExpress
from translate.ir import (
    REJECT_ICMP_CODES,
    Accept,
    Action,
    AddTtl,
    Audit,
    Classify,
    ConnSecmark,
    Dnat,
    Drop,
    Duplicate,
    External,
    Family,
    FillChecksum,
    Goto,
    HashMark,
    Interval,
    Jump,
    LimitMss,
    Log,
    Masquerade,
    NatPorts,
    Netmap,
    NfLog,
    NoTrack,
    Proxy,
    Queue,
    Redirect,
    Reject,
    RejectKind,
    RestoreMark,
    RestoreSocketMark,
    Return,
    SaveMark,
    Secmark,
    SetConnmark,
    SetMark,
    SetTcpFlags,
    SetTos,
    SetTtl,
    Snat,
    StripOptions,
    SynProxy,
    Template,
    Trace,
    TranslatePrefix,
)

__all__ = ["action_code"]


def action_code(actions: Sequence[Action], context: Context, number: NumberText = as_literal) -> Code:
    """Return the code of actions in their order. Raises CannotExpress."""
    return Code.joined([_action(action, context, number) for action in actions])


_REJECT_WITH_RESET: Final = 255
"""The value of ``p->reject`` for a TCP reset (``types.h``); every other value is an ICMP code."""
_CALL: Final = Needs(variables=frozenset({Variable.VERDICT}))
_NOTRACK: Final = Needs(features=frozenset({Feature.NOTRACK}))
_WORD: Final = (1 << 32) - 1
_TCP_OPTIONS: Final = Needs(features=frozenset({Feature.TCP_OPTIONS}))
_PATH_MTU: Final = Needs(parts=frozenset({RuntimePart.PATH_MTU}), features=frozenset({Feature.TCP_OPTIONS}))
_REUSE: Final = Needs(features=frozenset({Feature.REUSES_SOURCES}))


def _action(action: Action, context: Context, number: NumberText) -> Code:
    match action:
        case Accept():
            return Code(("return ACCEPT;",))
        case Drop():
            return Code(("return DROP;",))
        case Return():
            return Code(("return CONTINUE;",))
        case Jump(chain):
            call = f"{context.functions[chain]}(skb, p)"
            return Code((f"if ((verdict = {call}))", "\treturn verdict;"), _CALL)
        case Goto(chain):
            return Code((f"return {context.functions[chain]}(skb, p);",))
        case Reject(kind):
            codes = REJECT_ICMP_CODES[context.family]
            code = _REJECT_WITH_RESET if kind is RejectKind.TCP_RESET else codes.get(kind)
            if code is None:
                raise CannotExpress("reject-kind", f"{kind.value} does not exist in this address family")
            return Code((f"p->reject = {code};", "return REJECT;"))
        case SetMark(value, mask):
            kept = f"(p->mark & ~{number(mask)})"
            return Code((f"p->mark = {kept} ^ {number(value)};",))
        case HashMark():
            return hash_mark_code(action)
        case Proxy():
            raise CannotExpress("tproxy", "a tc program runs before the stack looks for transparent sockets")
        case Netmap(network=network, mask=mask):
            bits = context.family.bits
            return Code((f"return ask_netmap(p, {number(network, bits)}, {number(mask, bits)});",), _REUSE)
        case Queue():
            raise CannotExpress("queue", "a tc program cannot hand a packet to a queue of netfilter")
        case LimitMss(mss=int(mss)):
            return Code((f"if (limit_mss(skb, p, {number(mss, 16)}))", "\treturn DROP;"), _TCP_OPTIONS)
        case LimitMss():
            return Code(("if (clamp_mss(skb, p))", "\treturn DROP;"), _PATH_MTU)
        case StripOptions(options=kinds):
            bits = sum(1 << kind for kind in kinds)
            halves = [number(bits >> place & _WORD) for place in range(0, 256, 32)]
            words = [
                f"(u64){high} << 32 | {low}" for low, high in zip(halves[::2], halves[1::2], strict=True)
            ]
            call = f"strip_options(skb, p, {', '.join(words)})"
            return Code((f"if ({call})", "\treturn DROP;"), _TCP_OPTIONS)
        case SetConnmark(value, mask, shift):
            mark = _shifted(f"(p->conn.mark & ~{number(mask)}) ^ {number(value)}", shift)
            return Code(("if (p->has_ct)", f"\tset_connmark(p, {mark});"))
        case SaveMark(nfmask, ctmask, shift):
            kept = f"(p->conn.mark & ~{number(ctmask)})"
            saved = _shifted(f"(p->mark & {number(nfmask)})", shift)
            return Code(("if (p->has_ct)", f"\tset_connmark(p, {kept} ^ {saved});"))
        case RestoreMark(nfmask, ctmask, shift):
            kept = f"(p->mark & ~{number(nfmask)})"
            restored = _shifted(f"(p->conn.mark & {number(ctmask)})", shift)
            return Code(("if (p->has_ct)", f"\tp->mark = {kept} ^ {restored};"))
        case RestoreSocketMark():
            raise CannotExpress("socket-lookup", "a tc program cannot read the mark of a socket")
        case SetTos(value, mask):
            return Code((f"set_tos(skb, p, (p->tos & ~{number(mask)}) ^ {number(value)});",))
        case TranslatePrefix():
            return prefix_code(action, number)
        case SetTcpFlags(value, mask):
            return Code((f"set_tcp_flags(skb, p, (p->tcp_flags & ~{number(mask)}) ^ {number(value)});",))
        case SetTtl(value):
            return Code((f"set_ttl(skb, p, {number(value)});",))
        case AddTtl(by) if by < 0:
            return Code((f"set_ttl(skb, p, p->ttl > {-by} ? p->ttl - {-by} : 0);",))
        case AddTtl(by):
            return Code((f"set_ttl(skb, p, p->ttl < {255 - by} ? p->ttl + {by} : 255);",))
        case Log() | NfLog() | Audit() | Trace():
            return Code(("; /* not logged */",))  # see untranslated_effects
        case Classify(priority=priority):
            # FORWARD, OUTPUT and POSTROUTING run after ip_forward, which sets the priority by the TOS
            return Code((f"skb->priority = {number(priority)};",))
        case Duplicate():
            raise CannotExpress("tee", "the tc program does not copy packets")
        case Secmark() | ConnSecmark():
            raise CannotExpress("secmark", "a tc program cannot read or write the label of a packet")
        case External(target=target):
            raise CannotExpress("external", f"the tc program has no effect like that of {target}")
        case SynProxy():
            raise CannotExpress("synproxy", "the tc program does not answer in place of a server")
        case FillChecksum():
            return Code(("; /* not computed */",))  # see untranslated_effects
        case NoTrack():
            return Code(("if (!p->has_ct && !p->attached)", "\tp->ct_state = CT_UNTRACKED;"), _NOTRACK)
        case Template():
            raise CannotExpress("ct-template", "the tc program's connections have no zones and no helpers")
        case Dnat(addresses, ports):
            return Code(_bind(addresses, ports, (), context.family, number))
        case Snat(addresses, ports):
            return Code(_bind(addresses, ports, (), context.family, number), _source_needs(ports))
        case Masquerade(ports):
            lines = _bind(None, ports, ("BIND_MASQUERADE",), context.family, number)
            return Code(lines, _source_needs(ports))
        case Redirect(ports):
            return Code(_bind(None, ports, ("BIND_REDIRECT",), context.family, number))
        case _:
            assert_never(action)


def _shifted(mark: str, shift: int) -> str:
    """Return the expression of a mark that is shifted to the left, or to the right by a negative number."""
    return f"(({mark}) {'<<' if shift > 0 else '>>'} {abs(shift)})" if shift else mark


def _source_needs(ports: NatPorts) -> Needs:
    """Return the needs of a source binding.

    Unless ports are random, the binding reuses an earlier one of the same source (``find_appropriate_src``).
    """
    return NO_NEEDS if ports.random or ports.fully_random else _REUSE


def _bind(
    addresses: Interval | None, ports: NatPorts, flags: tuple[str, ...], family: Family, number: NumberText
) -> tuple[str, ...]:
    if addresses is not None:
        flags += ("BIND_ADDRESS",)
    if ports.interval is not None:
        flags += ("BIND_PORTS",)
    if ports.random or ports.fully_random:
        flags += ("BIND_RANDOM",)
    if ports.persistent:
        flags += ("BIND_PERSISTENT",)
    lines = []
    if ports.base is not None:
        flags += ("BIND_SHIFT",)
        lines = [f"p->bind_base = {number(ports.base, 16)};"]
    if not flags:
        raise CannotExpress("empty-nat", "the NAT target binds neither an address nor a port")
    arguments = []
    for interval, bits in ((addresses, family.bits), (ports.interval, 16)):
        if interval is None:
            arguments += ["0", "0"]
        else:
            low = number(interval.low, bits)
            arguments += [low, low if interval.is_point else number(interval.high, bits)]
    return *lines, f"return ask_nat(p, {', '.join(arguments)}, {' | '.join(flags)});"
