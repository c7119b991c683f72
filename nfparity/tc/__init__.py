"""A dataplane that stays when its loader has gone: pinned maps and programs, and a record of them.

``place`` says where a network namespace's things are, ``record`` what is kept on disk (by
``persistent_state``, whose guard cleans up after a loader that is killed). ``lifecycle`` loads, changes,
replaces, refreshes and unloads; ``recovery`` undoes what was begun; ``status`` and ``connections`` tell what
is there. Needs root; the kernel and BCC are asked for when something is done, not when this is imported.
"""

from nfparity.tc.lifecycle import Installed, Outcome, Rules

__all__ = ["Installed", "Outcome", "Rules"]
