"""Module inputs of one side overridden by what the other side recorded, through ``load`` of msprobe 26.2.

``instruction``  stub_instruction.json, read and checked in itself
``recorded``     a dump by its tensors: found by name, step and rank
``plan``         what each file will hold and where it goes, checked against both dumps; nothing is written
``tensors``      the one module that needs torch: ops applied, files written, bytes compared
``load_config``  the configuration of the run, and which msprobe can carry it out
``sides``        which two dumps a round is about
``outcomes``     stub_outcome.json, the state of a round
``prepare``      the source folder, its configuration and the state of the round, written in one step
``effect``       whether the new dump records what was prepared
"""
