"""A persistent tc dataplane: pinned maps and programs that outlive their loader, with a record.

``place`` contains the paths of a network namespace, ``record`` the state on disk (by ``persistent_state``,
whose guard undoes the changes of a loader that is killed). ``lifecycle`` loads, changes, replaces, refreshes
and unloads; ``recovery`` undoes interrupted actions; ``status`` and ``connections`` report. Needs root;
importing it does not.
"""

from nfparity.tc.lifecycle import DataplaneRules, Installed, LoadResult

__all__ = ["DataplaneRules", "Installed", "LoadResult"]
