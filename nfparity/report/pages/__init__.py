"""Reports as HTML pages: one file each, without anything to fetch.

``assessment``, ``fleet`` (many nodes), ``parity``, ``migration``, ``coverage`` and ``explanation`` turn a
result into the data of a page (``content``), with the severities of ``levels`` and paths of packets as lists
of hops (``hops``) and drawings of chains (``drawing``, ``svg``). ``page`` fills the templates beside it
(``findings.html``, ``explanation.html``, both with ``parts.html``) and adds ``page.css`` and ``page.js``,
which it allows by their hashes in a Content-Security-Policy. ``nfparity.cli`` imports the modules of pages,
and nothing else does.

Every text from rules, flows and snapshots is untrusted: templates escape each value, after control characters
and changes of writing direction have been made visible.
"""

__all__: list[str] = []
