"""The mapping of one snapshot, which replaces addresses and names in the same way in all files.

Files are processed twice. The first pass (:attr:`Mapping.learning`) replaces nothing and collects ranges,
networks and the names that kube-proxy hashes, because a range in one file affects the replacement of
addresses in other files.

kube-proxy puts hashes of names into its chain names (``KUBE-SVC-``, ``KUBE-SEP-`` and, in nftables mode,
``service-XXXXXXXX-…``). If the snapshot contains the name, its hash is replaced by the hash of the new name,
so that names and hashes still agree. All other hashes are replaced like words.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import socket
from collections.abc import Callable

from harness.files.errors import CaptureError
from nfparity.capture.anonymise.addresses import Addresses, Ranges, is_well_known
from nfparity.capture.anonymise.names import Names
from nfparity.capture.anonymise.words import CHAIN_WORDS, COMMENT_WORDS, NAMES, NFT_NAMES

__all__ = ["Mapping"]

_V4 = r"\d{1,3}(?:\.\d{1,3}){3}"
_V6 = r"[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:]*(?:\d{1,3}(?:\.\d{1,3}){3})?"
_ADDRESS = re.compile(
    rf"(?<![\w.:])(?P<first>{_V4}|{_V6})(?:-(?P<last>{_V4}|{_V6}))?(?:/(?P<length>{_V4}|{_V6}|\d{{1,3}}))?(?![\w.])"
)
_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_SERVICE = re.compile(r"(?P<name>[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9.-]*(?::[a-z0-9-]*)?)")
_WORD = re.compile(r"[A-Za-z0-9]+|[^\x00-\x7f]+")
_COMMENT_WORD = re.compile(
    r"KUBE-[A-Z]+-[A-Z2-7]{16}|(?P<digits>[0-9A-Fa-f](?:[.:-][0-9A-Fa-f]){3,})(?![0-9A-Za-z])|"
    + _WORD.pattern
)
"""Single hexadecimal digits with dots between them are a reversed IPv6 address (RFC 3596)."""
_PORT = re.compile(r":\d{1,5}(?![\w.:-])")
_HASHED = re.compile(r"KUBE-(SVC|SVL|SEP|FW|XLB|EXT)-([A-Z2-7]{16})")
_NFT_HASHED = re.compile(r"([a-z]+)-([A-Z2-7]{8})-([^_]+?)(?:__([0-9A-Fa-f.]+)/(\d+))?")
_PROTOCOLS = ("tcp", "udp", "sctp")
_BLOCK = 32
"""The bytes of one digest, of which longer replacements are made."""
_EVERYWHERE = ("127.0.0.1", "255.255.255.255", "169.254.169.254", "::1")


class Mapping:
    """The replacement of addresses and names in texts, determined by ``key``."""

    def __init__(self, key: bytes) -> None:
        self.learning = True
        self.ranges = Ranges()
        self.prefixes: set[tuple[int, int, int]] = set()
        """The addresses and prefixes in the snapshot: bits, value, length."""
        self.interfaces: set[str] = set()
        self._services: set[str] = set()
        self._endpoints: set[tuple[str, str]] = set()
        self._hashes: dict[str, tuple[str, str, str]] = {}
        self._key = key
        self._names = Names(key)
        self._addresses = Addresses(key, self.ranges)

    def learnt(self) -> None:
        """Change from learning to replacing, with a key that maps no address to another of the snapshot."""
        self.learning = False
        for name, protocol in itertools.product(sorted(self._services), _PROTOCOLS):
            self._hashes[kube_hash(name + protocol)] = (name, protocol, "")
        for (name, endpoint), protocol in itertools.product(sorted(self._endpoints), _PROTOCOLS):
            self._hashes[kube_hash(name + protocol + endpoint)] = (name, protocol, endpoint)
        best = -1
        for attempt in range(_ATTEMPTS):
            key = hashlib.blake2b(bytes((attempt,)), key=self._key, digest_size=32).digest()
            # If a network fills a private block, addresses near its ends have no other place.
            tried = Addresses(key, self.ranges, private=attempt < _ATTEMPTS // 2)
            clashes = self._clashes(tried)
            if best < 0 or clashes < best:
                best, self._addresses, self._names = clashes, tried, Names(key)
            if not clashes:
                return

    def unchanged(self) -> int:
        """Return the number of addresses that could not be replaced by another one."""
        return sum(self._addresses.prefix(bits, v, n) == v for bits, v, n in self._secret())

    def _secret(self) -> list[tuple[int, int, int]]:
        return [prefix for prefix in self.prefixes if not is_well_known(*prefix)]

    def _clashes(self, tried: Addresses) -> int:
        moved = self._secret()
        old = {(bits, value) for bits, value, _ in moved}
        return sum((bits, tried.prefix(bits, value, length)) in old for bits, value, length in moved)

    # Addresses

    def text_addresses(self, text: str, rest: Callable[[str], str] = str) -> str:
        """Replace the addresses in a text; ``rest`` replaces the text between them."""
        made, at = "", 0
        for match in _ADDRESS.finditer(text):
            new = self._matched(match)
            if new is None:
                continue
            made += rest(text[at : match.start()]) + new
            at = match.end()
        return made + rest(text[at:])

    def address(self, text: str) -> str:
        """Replace an address, a prefix or a range; return any other text unchanged."""
        match = _ADDRESS.fullmatch(text)
        new = None if match is None else self._matched(match)
        return text if new is None else new

    def is_address(self, text: str) -> bool:
        """Return whether a text is an address, a prefix, a range or a hardware address."""
        match = _ADDRESS.fullmatch(text)
        return match is not None and (
            _parse(match.group("first")) is not None or _MAC.fullmatch(match.group("first")) is not None
        )

    def has_address(self, text: str) -> bool:
        """Return whether a text contains an address."""
        return any(self.is_address(m.group(0)) for m in _ADDRESS.finditer(text))

    def prefix(self, text: str, length: int) -> str:
        """Replace the address of a prefix whose length is given separately."""
        parsed = _parse(text)
        if parsed is None:
            return text
        bits, value = parsed
        if self.learning:
            self.prefixes.add((bits, value, length))
            return text
        return _show(bits, self._addresses.prefix(bits, value, length))

    def address_range(self, first: str, last: str) -> tuple[str, str]:
        """Replace the ends of a range."""
        low, high = _parse(first), _parse(last)
        if low is None or high is None:
            return first, last
        bits = low[0]
        if self.learning:
            self.ranges.add(bits, low[1], high[1])
            return first, last
        made = self._addresses.range(bits, low[1], high[1])
        return _show(bits, made[0]), _show(bits, made[1])

    def network(self, address: str, length: int) -> None:
        """Ensure that the first and last address of an interface's network stay its first and last."""
        parsed = _parse(address)
        if parsed is not None and self.learning:
            self.ranges.add_network(parsed[0], parsed[1], length)

    def _matched(self, match: re.Match[str]) -> str | None:
        first, last, length = match.group("first", "last", "length")
        low = _parse(first)
        if low is None:
            return self._mac(match) if _MAC.fullmatch(first) else None
        bits, value = low
        tail = "" if length is None else f"/{length}"
        if last is not None:
            if _parse(last) is None:
                return None
            return "-".join(self.address_range(first, last)) + tail
        span = bits if length is None else _length(length, bits, match.group(0))
        is_prefix = value & ((1 << (bits - span)) - 1) == 0
        if self.learning:
            self.prefixes.add((bits, value, span if is_prefix else bits))
            return match.group(0)
        if is_prefix:
            return _show(bits, self._addresses.prefix(bits, value, span)) + tail
        return self._moved(bits, value) + tail

    def _moved(self, bits: int, value: int) -> str:
        return _show(bits, self._addresses.address(bits, value))

    def _mac(self, match: re.Match[str]) -> str:
        text = match.group(0)
        if self.learning or set(text.lower()) <= set("0:") or set(text.lower()) <= set("f:"):
            return text
        # Locally administered and unicast.
        return ":".join(["02", *(f"{b:02x}" for b in self._names.digest(text.lower(), 5))])

    # Names

    def interface(self, text: str) -> str:
        """Replace an interface's name, or a pattern that ends in ``+`` or ``*``."""
        stem = text[:-1] if text[-1:] in ("+", "*") else text
        if self.learning:
            self.interfaces.add(stem)
            return text
        return self._names.interface(stem) + text[len(stem) :]

    def name(self, text: str) -> str:
        """Replace a name of a Kubernetes object, a host, or another name without a kind of its own."""
        return text if self.learning else self._names.name(text, NAMES)

    def octets(self, text: str) -> str:
        """Replace bytes in hexadecimal notation by as many others; spaces between them are left out."""
        size = len("".join(text.split())) // 2
        blocks = (self._names.digest(f"{block}/{text}", _BLOCK) for block in range(size // _BLOCK + 1))
        return text if self.learning else b"".join(blocks)[:size].hex()

    def service(self, text: str) -> str:
        """Replace ``namespace/name:port``, part by part."""
        if self.learning:
            self._services.add(text)
            return text
        namespace, _, rest = text.partition("/")
        name, colon, port = rest.partition(":")
        return f"{self.name(namespace)}/{self.name(name)}{colon}{self.name(port)}"

    def endpoint(self, service: str, endpoint: str) -> None:
        """Learn that a service has an endpoint, in the form of rules: ``ADDRESS:PORT``."""
        if self.learning:
            self._services.add(service)
            self._endpoints.add((service, endpoint))

    def chain(self, text: str) -> str:
        """Replace the name of a chain, a set or a list, except for the public words in it."""
        if self.learning or text in NAMES or text in NFT_NAMES:
            return text
        match = _HASHED.fullmatch(text)
        if match is not None:
            return f"KUBE-{match.group(1)}-{self._rehashed(match.group(2))}"
        match = _NFT_HASHED.fullmatch(text)
        if match is not None:
            return self._nft_chain(match)
        return self.text_addresses(text, lambda s: _WORD.sub(self._chain_word, s))

    def _chain_word(self, match: re.Match[str]) -> str:
        return self._names.word(match.group(0), CHAIN_WORDS)

    def _rehashed(self, text: str) -> str:
        known = self._hashes.get(text)
        if known is None:
            return self._names.hash(text)
        name, protocol, endpoint = known
        return kube_hash(self.service(name) + protocol + self.text_addresses(endpoint))

    def _nft_chain(self, match: re.Match[str]) -> str:
        kind, hashed, tail, address, port = match.groups()
        namespace, *rest = tail.split("/")
        parts = [self.name(namespace), *(p if p in _PROTOCOLS else self.name(p) for p in rest)]
        old, new = tail, "/".join(parts)
        if address is not None:
            # kube-proxy writes dots in place of the colons of IPv6 addresses.
            plain = address if _parse(address) is not None else address.replace(".", ":")
            moved = self.address(plain)
            old += f"__{address}/{port}"
            new += f"__{moved.replace(':', '.')}/{port}"
        made = kube_hash(new)[:8] if kube_hash(old)[:8] == hashed else self._names.hash(hashed)
        return f"{kind}-{made}-{new}"

    def comment(self, text: str) -> str:
        """Replace a comment, except for punctuation and ports of addresses, and well-known words.

        Numbers are replaced, too: one may be a part of an address, a phone number, or a ticket number.
        """
        made, at = "", 0
        for match in _ADDRESS.finditer(text):
            new = None if self._may_be_turned(match.group("first")) else self._matched(match)
            if new is None:
                continue
            port = _PORT.match(text, match.end())
            end = match.end() if port is None else port.end()
            made += self._words(text[at : match.start()]) + new + text[match.end() : end]
            at = end
        return made + self._words(text[at:])

    def _may_be_turned(self, text: str) -> bool:
        """Return whether an unchanged address may be a private one with its bytes reversed."""
        parsed = _parse(text)
        if parsed is None or text in _EVERYWHERE or not is_well_known(*parsed, parsed[0]):
            return False
        return parsed[1] & (0xFF if parsed[0] == 32 else (1 << 64) - 1) != 0

    def _words(self, text: str) -> str:
        made, at = "", 0
        for match in _SERVICE.finditer(text):
            made += self._plain(text[at : match.start()]) + self.service(match.group("name"))
            at = match.end()
        return made + self._plain(text[at:])

    def _plain(self, text: str) -> str:
        if self.learning:
            return text
        text = _HASHED.sub(lambda m: self.chain(m.group(0)), text)
        return _COMMENT_WORD.sub(self._comment_word, text)

    def _comment_word(self, match: re.Match[str]) -> str:
        word = match.group(0)
        if match.group("digits") is not None:
            return self._names.name(word)
        if word.startswith("KUBE-") or word.lower() in COMMENT_WORDS:
            return word
        return self._names.word(word, CHAIN_WORDS)


_ATTEMPTS = 64


def kube_hash(text: str) -> str:
    """Return the hash in the names of kube-proxy's chains: 16 characters of base32 (``portProtoHash``)."""
    return base64.b32encode(hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()).decode()[:16]


def _parse(text: str) -> tuple[int, int] | None:
    family, bits = (socket.AF_INET6, 128) if ":" in text else (socket.AF_INET, 32)
    try:
        return bits, int.from_bytes(socket.inet_pton(family, text), "big")
    except OSError:
        return None


def _show(bits: int, value: int) -> str:
    family = socket.AF_INET6 if bits == 128 else socket.AF_INET
    return socket.inet_ntop(family, value.to_bytes(bits // 8, "big"))


def _length(text: str, bits: int, whole: str) -> int:
    """Return the length of a prefix, given as a number or a netmask. CaptureError for another mask."""
    if text.isdigit() and int(text) <= bits:
        return int(text)
    mask = _parse(text)
    if mask is not None and mask[0] == bits:
        inverted = ~mask[1] & ((1 << bits) - 1)
        if inverted & (inverted + 1) == 0:
            return bits - inverted.bit_length()
    raise CaptureError(f"{whole}: this mask is not a prefix; addresses with such a mask cannot be anonymised")
