"""The two skills in a loop: dumps with known faults, analysed, overridden by the real msprobe and judged until nothing is open.

``fault_sets``  seeded sets of faults and roundings, and what must be found of each
``sides``       the toy's two sides run under msprobe, in one process or as FSDP replicas
``looping``     the loop itself: commands of both skills, and a way to run a side again; no step is left to a person
``running``     sets in every form of the loop, in a folder: what `make loop` calls

The commands run as forks of one process that has imported torch, each as ``python3 SCRIPT …`` would.
"""
