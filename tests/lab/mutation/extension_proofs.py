"""Reasons why faults in the sample rule of an extension change nothing, or nothing that a test can show.

A *neutral* fault gives every packet the outcome that it has without the fault. A packet that shows it
disproves the reason, and ``python -m tests.lab.mutation.extensions`` says so. A fault is *out of reach* if it
shows only on a node, or after a time, that neither the testbed nor an interpreter of instructions has; its
reason names what shows it elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tests.lab.mutation.fault import Fault

__all__ = ["NEUTRAL", "OUT_OF_REACH", "Reason", "reason_of"]


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for faults whose :attr:`Fault.key` matches ``pattern``, in an extension or in all (``""``).

    ``sample``: the line of the sample must match this, too.
    """

    extension: str
    pattern: str
    text: str
    sample: str = ""


NEUTRAL: Final = (
    Reason(
        "-j SET",
        r"^(lost-test|side): \w+_FORWARD\w*: (?P<first>.*)ip [sd]addr != 0\.0\.0\.0 (?P<rest>.*) → "
        r"(?P=first)(ip [sd]addr != 0\.0\.0\.0 )?(?P=rest)$",
        "no packet from or to 0.0.0.0 is forwarded (ip_route_input_slow)",
    ),
    Reason(
        "-j SET",
        r"^mark-bit: filter_FORWARD_2: meta l4proto tcp ip frag-off & 0x1fff == 0 add @set_pairs .* → .*"
        r"ip frag-off & 0xfff == 0 ",
        "the set is looked up only for whole packets, and one of TCP has added its own key before that",
    ),
    Reason(
        "-m owner",
        r"^side: \S+: meta skuid 0-4294967295 ",
        "a socket with a user has a group, too (nft_meta_get_eval_skugid)",
    ),
    Reason(
        "-m owner",
        r"^number: \S+: meta skuid 0-4294967295 .* → meta skuid 0-4294967294 ",
        "4294967295 is no user's number: one that the namespace does not know is shown as the overflow user's"
        " (nft_meta_get_eval_skugid, from_kuid_munged)",
    ),
    Reason(
        "-m devgroup",
        r"^(lost-test|side): \w+_FORWARD: oifgroup 0x0-0xffffffff ",
        "a packet in FORWARD has both interfaces, and each has a group: the test always holds"
        " (nft_meta_store_ifgroup)",
    ),
    Reason(
        "-m connlabel",
        r"^lost-test: mangle_\w+: ct state established,related,new (?P<rest>ct label set .*) → (?P=rest)$",
        "a packet without one of these states has no connection, and without one nothing gets a label"
        " (nft_ct_get_eval, nft_ct_set_eval)",
    ),
    Reason(
        "-m connlabel",
        r"^inverted-test: mangle_\w+: ct state established,related,new ct label set .* → "
        r"ct state != established,related,new ct label set ",
        "nft 1.0 compares the state with all three bits at once, and a packet has one: the test always holds,"
        " and without a connection nothing gets a label (nft_ct_set_eval)",
    ),
    Reason(
        "-m time",
        r"^number: mangle_INPUT_2: meta hour 21601-86399 drop .* → meta hour 21602-86399 drop ",
        "the caller of the chain tests for hours up to 21600, and from 79200 on",
        sample="--timestart 22:00 --timestop 06:00",
    ),
    Reason(
        "-m time",
        r"^number: mangle_INPUT_[23]: meta time \{ (?P<ranges>.*-)4294\d{6} \} (?P<rest>.*) → "
        r"meta time \{ (?P=ranges)4294\d{6} \} (?P=rest)$",
        "the caller of the chain tests for a time below 2147483648",
        sample="--timestart 22:00 --timestop 06:00 --monthdays 1 --contiguous",
    ),
    Reason(
        "-m time",
        r"^number: mangle_INPUT: meta time < 2147483648 .* → meta time < 2147483649 ",
        "second 2147483648 is on 19 January 2038, 03:14:08, and the rule is for the first of a month and the"
        " morning after it",
        sample="--timestart 22:00 --timestop 06:00 --monthdays 1 --contiguous",
    ),
    Reason(
        "",
        r"^(mark-bit|lost-test): \w+_INPUT\w*: .*ip frag-off & 0x1fff == 0 .* → (?!.*ip frag-off & 0x1fff )",
        "the node reassembles what it delivers to itself before INPUT (ip_local_deliver): no offset there",
    ),
    Reason(
        "-m u32",
        r"^(mark-bit|lost-test): \w+_INPUT\w*: .*@nh,32,32 & 0x3fff == 0x0 .* → "
        r"(?!.*@nh,32,32 & 0x3fff == 0x0 )",
        "the node reassembles what it delivers to itself before INPUT, and a whole packet has neither an"
        " offset nor the flag for more fragments (ip_frag_reasm)",
    ),
    Reason(
        "",
        r"^lost-test: \S+: meta l4proto (50|51|108) (?P<rest>.*(esp|ah|comp) \w+ .*) → (?P=rest)$",
        "nft itself tests the protocol before a key of its header (payload_gen_dependency)",
    ),
    Reason(
        "-m ah",
        r"^lost-test: \S+: @th,0,24 >= 0 (?P<rest>ah spi \S+ ah hdrlength \d+ ah reserved 0 .*) → (?P=rest)$",
        "nft loads length and reserved bytes together, which finds nothing in a later fragment"
        " (nft_payload_eval)",
    ),
    Reason(
        "",
        r"^lost-test: \S+: .*@th,0,24 >= 0 icmpv6 type (128|1) .* → (?!.*@th,0,24)",
        "what would be read of a fragment is the first byte of the IPv6 header, 0x60 to 0x6f",
    ),
    Reason(
        "",
        r"^number: \w+_FORWARD\w*: .*(ip ttl|ip6 hoplimit) 0-\d+ .* → .*(ip ttl|ip6 hoplimit) 1-",
        "a packet that would be forwarded with a TTL of 0 is dropped before FORWARD (ip_forward)",
    ),
    Reason(
        "",
        r"^number: \w+_FORWARD\w*: .*(ip ttl|ip6 hoplimit) \d+-255 .* → .*(ip ttl|ip6 hoplimit) \d+-254 ",
        "the TTL is at most 255 on arrival, and lower by one in FORWARD (ip_decrease_ttl)",
    ),
    Reason(
        "",
        r"^number: \S+: meta length 0-\d+ .* → meta length 1-",
        "an IP packet has at least the length of its header (ip_rcv_core)",
    ),
    Reason(
        "-m rpfilter",
        r"^address: .*1\.0\.0\.0-255\.255\.255\.254.* → "
        r".*(1\.0\.0\.1-255\.255\.255\.254|1\.0\.0\.0-255\.255\.255\.255)",
        "1.0.0.0 is the broadcast address of no network, as its last bit is 0; the kernel drops packets from"
        " 255.255.255.255 when it routes them (ip_route_input_slow, ip_mc_validate_source)",
    ),
    Reason(
        "",
        r"^side: \S+: .*ip6? [sd]addr & (0\.0\.0\.0|::) .* → .*ip6? [sd]addr & (0\.0\.0\.0|::) ",
        "the mask leaves the same nothing of either address",
    ),
    Reason(
        "-m quota",
        r"^(lost-line|quota): quota_\w+: over 9223372036854775807 bytes → ",
        "the quota is used up by 2^63 bytes, which take 23 years at 100 Gbit/s; one byte of it, or the rule"
        " before then, changes no packet",
    ),
    Reason(
        "-m connbytes",
        r"^number: \S+: ct (\w+ )?(packets|bytes|avgpkt) (!= )?\d+-18446744073709551615 "
        r".*-18446744073709551614 ",
        "no connection carries 2^64 - 1 packets or bytes",
    ),
    Reason(
        "-m connbytes",
        r"^(lost-line|verdict|count|number): \S+: ct avgpkt 18446744073709551614-",
        "no packet has 2^64 - 2 bytes, so the rule never matches",
    ),
    Reason(
        "-m connbytes",
        r"^(lost-line|verdict|number|direction): \S+: ct (original|reply) bytes 5 ",
        "no packet has fewer than 20 bytes, so a sum of 5 never occurs",
    ),
    Reason(
        "-m connbytes",
        r"^(number|direction|count): \S+: ct (reply )?(packets|avgpkt) 0-18446744073709551615 .* → "
        r"ct (\w+ )?(packets|bytes|avgpkt) 0-",
        "every count is in this range",
    ),
    Reason(
        "-m connbytes",
        r"^number: \S+: ct (original )?(packets|avgpkt) 0-\d+ .* → ct (original )?(packets|avgpkt) 1-",
        "the count includes the packet itself, which has 20 bytes or more (nf_ct_acct_update)",
    ),
    Reason(
        "-m conntrack",
        r"^side: \S+: ct original protocol & 0xff .* → ct reply protocol & 0xff ",
        "both directions of a connection have one protocol (nf_ct_invert_tuple)",
    ),
    Reason(
        "-m recent",
        r"^(lost-line|list|set-change): mangle_INPUT_3: ip saddr @recent_hits update @recent_hits .* → "
        r"(\(gone\)|ip saddr @recent_hits_turn update @recent_hits |ip saddr @recent_hits comment )",
        "the address is in the set already, whose elements have no timeout; what counts is its turn",
    ),
    Reason(
        "-m conntrack",
        r"^number: \S+: meta l4proto \{ 0-5, 7-255, tcp \} ct original proto-dst 80 drop .* → "
        r"meta l4proto \{ 1-5, 7-255, tcp \} ",
        "a connection of protocol 0 has no ports, and 0 in their place (nf_conntrack_generic)",
    ),
    Reason(
        "-m connlimit",
        r"^\S+: \S+: add @\w+ \{ ip6 saddr & :: ct count over 4294967295 \} .* → "
        r"add @\w+ \{ ip6 [sd]addr & \S+ ct count over 429496729[45] ",
        "a limit above the greatest count of a 32-bit counter: the rule never matches",
    ),
    Reason(
        "-m string",
        r"^(lost-line|mark-bit|number|mask): \S+: @nh,0,32 & 0xff000000 == 0x0 return .* → "
        r"(\(gone\)|@nh,0,32 & 0x(7f800000|ff000000|7f000000) )",
        "the first byte of a header of IPv4 is 0x45 to 0x4f, so the rule matches no packet in either form",
    ),
    Reason(
        "",
        r"^inverted-test: \S+: meta l4proto (tcp|udp) comment ",
        "the rule has no statement, as without options to strip, or for a checksum",
    ),
    Reason(
        "-m tcp",
        r"^lost-test: \S+: meta l4proto tcp (?P<rest>(ip frag-off & 0x1fff == 0 )?tcp option \d+ exists .*)"
        r" → (?P=rest)$",
        "nft_exthdr itself reads the options of TCP alone (nft_tcp_header_pointer)",
    ),
    Reason(
        "-m tcp",
        r"^(mark-bit|lost-test): \S+: .*ip frag-off & 0x1fff == 0 (?P<rest>tcp option \d+ exists .*)"
        r" → .*(?P=rest)$",
        "nft_exthdr finds no option in a later fragment (nft_tcp_header_pointer)",
    ),
    Reason(
        "-j CONNMARK",
        r"^mark-operation: \S+: (ct|meta) mark & (?P<bit>0x\w+) == (?P=bit) (ct|meta) mark set \S+ mark \^ ",
        "the bit was cleared by the first rule of the chain, and no other rule of it sets the bit",
        sample=r"^(?!.* --nfmask 0xff --ctmask 0xf0$)",
    ),
    Reason(
        "-j CONNMARK",
        r"^mark-operation: \S+: meta mark & (?P<bit>0x[1248]0) == (?P=bit) ct mark set ct mark \^ ",
        "the bit was cleared by the first rule of the chain, and no other rule of it sets the bit",
        sample=r" --nfmask 0xff --ctmask 0xf0$",
    ),
    Reason(
        "-j CONNMARK",
        r"^\S+: mangle_PREROUTING_2: ct mark & (0x1 == 0x0|0x2 == 0x2|0x4 == 0x4|0x8 == 0x8) ct mark set .* "
        r"→ (\(gone\)|.*ct mark & 0x\w+ == 0x[0248] )",
        "the first rule of the chain sets the lowest bit and clears the next three: this rule never matches",
        sample=" --set-xmark 0x1/0xf ",
    ),
    Reason(
        "-j CONNMARK",
        r"^lost-test: mangle_PREROUTING_2: ct mark & (0x1 == 0x1|0x2 == 0x0|0x4 == 0x0|0x8 == 0x0) ct mark "
        r"set ",
        "the first rule of the chain sets the lowest bit and clears the next three: this test always holds",
        sample=" --set-xmark 0x1/0xf ",
    ),
    Reason(
        "-j CONNMARK",
        r"^lost-line: \S+: meta mark set ct mark comment ",
        "the rule of this test behind the sample restores the mark again",
        sample=" --restore-mark$",
    ),
    Reason(
        "-m tcpmss",
        r"^lost-test: \S+: meta l4proto tcp (?P<rest>tcp option maxseg .*) → (?P=rest)$",
        "nft_exthdr itself reads the options of TCP alone (nft_tcp_header_pointer)",
    ),
    Reason(
        "-j CT",
        r"^\S+: raw_OUTPUT: tcp dport 21 ct state invalid ct zone set 0 ",
        "a template of the default zone has an effect only on a later -j CT, and there is none",
    ),
    Reason(
        "-j CT",
        r"^value: \S+: .*ct (\w+ )?zone set (\d+) .* → ",
        "no other rule names a zone: one apart from the default zone is as good as another",
    ),
)

OUT_OF_REACH: Final = (
    Reason(
        "",
        r"^(mark-bit|lost-test): \w+_OUTPUT\w*: .*ip frag-off & 0x1fff == 0 ",
        "the testbed's node sends no fragments; tests/kernel/test_fragments.py",
    ),
    Reason(
        "-m recent",
        r"^\S+: \S+: .*@recent_\w+_time .* (jump \S+|drop|return) comment",
        "lists that count are filled in turn, so the last one implies the others until --seconds are over;"
        " tests/kernel/test_recent.py",
    ),
    Reason(
        "-m hbh",
        r"^\S+: \S+: hbh hdrlength .*@nh,32,32 & 0xff00 == 0x0 .*@nh,3",
        "hop-by-hop options of the testbed are padding alone; tests/kernel/test_extension_headers.py",
    ),
    Reason(
        "-j CT",
        r"^\S+: raw_OUTPUT_behind_conntrack: ct state new jump ",
        "a helper shows in the connections that it expects, and the testbed has no conversation of FTP;"
        " tests/kernel/test_helpers.py",
    ),
    Reason(
        "-m u32",
        r"^lost-test: \S+: @nh,0,32 & 0xfffff == 0xf1a70 (?P<rest>.*) → (?P=rest)$",
        "all IPv6 packets of the testbed have the flow label 0xf1a70",
    ),
    Reason(
        "-m cluster",
        r"^prefix-length: .*224\.0\.0\.0/4 .* → .*224\.0\.0\.0/5 ",
        "the node is in no group from 232.0.0.0 on",
    ),
    Reason(
        "-m ecn",
        r"^lost-test: \S+: (ip frag-off & 0x1fff == 0|@th,0,24 >= 0) (?P<rest>tcp flags .*) → (?P=rest)$",
        "xt_ecn itself reads data of later fragments as a header, so that their result is not known;"
        " tests/kernel/test_fragments.py",
    ),
    Reason(
        "-j ECN",
        r"^(mark-bit|lost-test): \S+: ip frag-off & 0x1fff == 0 (?P<rest>tcp flags == .* tcp flags set .*) → "
        r"(ip frag-off & 0xfff == 0 )?(?P=rest)$",
        "outcomes do not have the data of later fragments, which the fault would change",
    ),
    Reason(
        "-m recent",
        r"^side: mangle_INPUT_3: ip saddr @recent_hits update ",
        "an address of the node is listed instead, and no flow goes from one of its addresses to another",
    ),
    Reason(
        "-m string",
        r"^mask: \S+: @nh,0,32 & 0xff00 == 0x0 return .* → @nh,0,32 & 0x7f00 ",
        "the testbed's frames have at most 1,500 bytes, so the first byte of a length is at most 5",
    ),
    Reason(
        "",
        r"^number: \S+: meta length (!= )?(512-65535|40-1280) ",
        "the testbed's frames have at most 1,500 bytes, and none has only the header of IPv6",
    ),
    Reason(
        "",
        r"^number: \S+: .*(hbh|dst) hdrlength 0-255 .*0-254 ",
        "options of 2,048 bytes do not fit into the testbed's frames; tests/kernel/test_extension_headers.py",
    ),
)


def reason_of(reasons: tuple[Reason, ...], extension: str, fault: Fault, sample: str = "") -> str | None:
    """Return the first of the reasons that applies to a fault of an extension's sample, or None.

    ``sample`` is the line of the sample rule in its file.
    """
    for reason in reasons:
        applies = reason.extension in ("", extension) and re.search(reason.sample, sample)
        if applies and re.search(reason.pattern, fault.key):
            return reason.text
    return None
