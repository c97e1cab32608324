"""What is changed in other people's source trees: recorded before it is touched, put back afterwards, proven gone.

``records``    change_ledger.json: roots, changes, state
``store``      the bytes of before, by their digest; what lies at a path; a file put back
``places``     which root a path lies in; what must not be recorded
``recording``  record
``changes``    diff: what was edited since, and whether somebody else has edited it after that
``restoring``  restore
``residue``    which switches and debugger calls stand in a tree
``verifying``  verify, the gate
"""
