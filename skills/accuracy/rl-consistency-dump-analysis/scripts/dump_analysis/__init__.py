"""Find where an RL trainer and its inference engine part numerically, from one dump of each.

A room is a module or folder here; it imports only from rooms on lower floors (a test of the repository
holds that): 0 ``msprobe_files`` (beside this package) · 1 ``artefacts`` ``boundaries`` ``floats``
``sides`` ``cli`` · 2 ``guards`` ``wording`` ``layouts`` ``ulps`` ``grids`` · 3 ``tensors`` ``tally`` ``train_log`` ·
4 ``comparable`` ``mapping`` ``pairs`` · 5 ``tokens`` ``measure`` ``weights`` ``probe`` · 6 ``gate`` ·
8 ``divergence`` ``chain`` ``causes`` · 9 ``findings`` · 10 ``conclusion`` ``gathered`` ``report`` · 11 ``pipeline`` ·
12 ``stages`` ``reporting``.
"""
