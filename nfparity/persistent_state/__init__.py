"""State that outlives a command: the identity of network namespaces, records on disk, undo guards.

``namespace`` identifies the network namespace. ``disk`` reads and writes files, protected against a power
cut, a full disk and other users. ``recordfile`` and ``reservedlog`` keep a record and a log in space reserved
before the first change, so that a disk that fills up later does no harm. ``locking`` excludes other commands.
``guard`` is a process that undoes the changes of a killed command. ``tc`` and ``migrate`` use this package,
because they change the kernel in steps that must be undoable.

Rule for users: before a change, a record that cannot be written ends the command. During an undo, the kernel
is restored first, and a record that cannot be written is only reported.
"""
