"""Whether two dumps can be compared: what each side recorded, which rows are the same tokens, and a list of checks.

``sides``    the units of a side, and why one cannot be read
``modules``  decoder layers, calls, and what ran after the last layer
``embedding`` the module that takes token ids
``integers`` recorded vectors of integers: ids, positions, and the forwards that took them
``pieces``   a forward cut into its sequences
``matching`` which forward of a side ran the other's tokens, and which rows are left over
``warm_up``  forwards of zeros
``judged``   the units that hold those forwards
``card``     what the task card says where a dump cannot
``checks``   what a check is; ``of_files``, ``of_runs``, ``of_tokens``, ``of_modules`` hold them
``report``   all of them, as dump_pair_report.json
"""
