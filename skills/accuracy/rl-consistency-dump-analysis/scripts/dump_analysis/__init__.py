"""Find where an RL trainer and its inference engine part numerically, from one dump of each.

A room is a module or folder here; it imports only from rooms on lower floors (a test of the repository
holds that): 0 ``msprobe_files`` (beside this package) · 1 ``artefacts`` ``boundaries`` ``floats``
``sides`` ``cli`` · 2 ``wording`` ``layouts`` · 3 ``tally`` ``tensors`` ``train_log`` · 4 ``comparable`` ``mapping`` ``pairs`` ·
5 ``gate`` ``weights`` ``probe`` · 7 ``divergence`` · 8 ``findings`` · 9 ``conclusion`` · 11 ``pipeline``
· 12 ``stages``.
"""
