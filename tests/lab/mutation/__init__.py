"""A test of the harness itself: faults planted in translated output, which packets must show.

``nft_faults`` and ``bpf_faults`` derive single faults from an emitter's output, never from the IR;
``hunt`` loads each into a real kernel and replays the regression corpus until something differs;
``proofs`` lists the faults that cannot be seen because they change nothing, each with the reason.
``python -m tests.lab.mutation`` prints the table. Imported by nothing but the tests.
"""

__all__: list[str] = []
