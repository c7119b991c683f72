"""Shortened logs of compiler and verifier, all but one from Linux 6.18 or clang 14."""

from __future__ import annotations

from backends.tc_ebpf.programs.verifier_log import shorten

LOADING = "Failed to load BPF program b'nfparity_ingress': Permission denied"

OUT_OF_BOUNDS = """\
bpf: Failed to load program: Permission denied
0: R1=ctx() R10=fp0
; int nfparity_ingress(struct __sk_buff *skb) @ main.c:2335
0: (bf) r6 = r1                       ; R1=ctx() R6=ctx()
1: (b7) r8 = 2                        ; R8=2
; { u8 *d = (void*)(long)skb->data; if (d[40] == 3) return TC_ACT_SHOT; } @ main.c:2339
2: (61) r1 = *(u32 *)(r6 +76)         ; R1=pkt(r=0) R6=ctx()
3: (71) r1 = *(u8 *)(r1 +40)
invalid access to packet, off=40 size=1, R1(id=0,off=40,r=0)
R1 offset is outside of the packet
processed 4 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0

"""

WRONG_TYPE = """\
bpf: Failed to load program: Permission denied
;  @ main.c:0
2: (07) r7 += -32                     ; R7=fp-32
; bpf_sk_assign(skb, 0, 0); @ main.c:2339
6: (85) call bpf_probe_read_user#112          ; R0=scalar() fp-32=mmmmmmmm
9: (b7) r3 = 0                        ; R3=0
10: (85) call bpf_sk_assign#124
R2 type=scalar expected=sock_common, sock, tcp_sock, xdp_sock, ptr_, trusted_ptr_
processed 11 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0

"""

UNKNOWN_HELPER = """\
bpf: Failed to load program: Invalid argument
0: R1=ctx() R10=fp0
0: (bf) r6 = r1                       ; R1=ctx() R6=ctx()
1: (85) call unknown#{number}
invalid func unknown#{number}
processed 2 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0

"""

# As kernel/bpf/verifier.c says it.
TOO_LARGE = """\
bpf: Failed to load program: Argument list too long
0: (bf) r6 = r1
from 17 to 19: R0=1 R6=ctx(off=0,imm=0) R10=fp0
BPF program is too large. Processed 1000001 insn
processed 1000001 insns (limit 1000000) max_states_per_insn 28 total_states 46351
"""

COMPILER = """\
/virtual/main.c:2214:1: error: use of undeclared identifier 'nothing'
nothing;
^
1 error generated.
"""


def test_the_complaint_and_its_line_of_c() -> None:
    assert shorten(LOADING, OUT_OF_BOUNDS).splitlines() == [
        "nfparity_ingress: the verifier refuses it: invalid access to packet, off=40 size=1, "
        "R1(id=0,off=40,r=0)",
        "R1 offset is outside of the packet",
        "    { u8 *d = (void*)(long)skb->data; if (d[40] == 3) return TC_ACT_SHOT; }",
    ]
    assert shorten(LOADING, WRONG_TYPE).splitlines() == [
        "nfparity_ingress: the verifier refuses it: R2 type=scalar expected=sock_common, sock, tcp_sock, "
        "xdp_sock, ptr_, trusted_ptr_",
        "    bpf_sk_assign(skb, 0, 0);",
    ]


def test_a_helper_that_is_missing_has_a_name() -> None:
    said = shorten(LOADING, UNKNOWN_HELPER.format(number=152))
    assert said == (
        "nfparity_ingress: this kernel has no helper bpf_redirect_neigh (number 152) for tc programs"
    )
    assert "no helper unknown (number 9999)" in shorten(LOADING, UNKNOWN_HELPER.format(number=9999))
    known = "program of this type cannot use helper bpf_get_current_task#35\n"
    assert "no helper bpf_get_current_task (number 35)" in shorten(LOADING, known)


def test_a_program_that_is_too_large() -> None:
    said = shorten(LOADING, TOO_LARGE)
    assert said == "nfparity_ingress: the verifier gives up: BPF program is too large. Processed 1000001 insn"


def test_errors_of_the_compiler() -> None:
    assert shorten("Failed to compile BPF module <text>", COMPILER).splitlines() == [
        "the compiler refuses it",
        "/virtual/main.c:2214:1: error: use of undeclared identifier 'nothing'",
        "nothing;",
    ]
    assert shorten("Failed to compile", COMPILER * 5).endswith("and 2 more")


def test_without_a_log_the_reason_is_what_there_is() -> None:
    said = shorten(LOADING, "bpf: Failed to load program: Operation not permitted\n")
    assert said == "nfparity_ingress: Operation not permitted"
    assert shorten("no kernel", "") == "no kernel"
