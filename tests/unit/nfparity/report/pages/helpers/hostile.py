"""Names and comments of an attacker who wants to inject code or content into a page."""

from __future__ import annotations

__all__ = ["CHAIN", "COMMENT", "HOSTILE"]

CHAIN = "<svg/onload=hacked()>"
COMMENT = "</li></script><script>hacked()</script>' {{ 7 * 7 }} \u202egnihtyreve stpecca"
HOSTILE = (
    "</script><script>hacked()</script><img src=x onerror=hacked()>\"' onclick='hacked()' &lt;b&gt; <!-- "
    "{{ 7 * 7 }} {% raw %} \u202e\u2066\u200f \x00\x07\x1b[31m \r\n\u2028\udcff ]]> \N{SNOWMAN}"
)
