"""What outlives the command that changes a network namespace: who it is about, records on disk, undoing.

``namespace`` identifies the network namespace; ``disk`` reads and writes files that a power cut, a full disk
or another user must not spoil; ``recordfile`` and ``reservedlog`` keep a record and a log in space that is
taken before the first change, so that a disk that fills up later does not matter to them; ``locking`` keeps
other commands out; ``guard`` is a process that undoes what another has begun. For whatever changes the kernel
in steps and must be able to go back: a tc program that stays, and the migration of a node's rules.

The rule for who uses it: on the way forward a record that cannot be written ends the command before the
change that it tells of; on the way back the kernel is restored first, and a record that cannot be
written is a complaint and nothing more.
"""
