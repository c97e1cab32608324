"""Find where an RL trainer and its inference engine part numerically, from one dump of each.

Rooms, ground floor first; a room imports only from lower floors (a test holds that):
0 ``msprobe_files`` (beside this package) · 1 ``artefacts`` ``floats`` ``wording`` ·
2 ``sides`` ``tensors`` · 3 ``cli`` … see FLOORS in the repository's tests.
"""
