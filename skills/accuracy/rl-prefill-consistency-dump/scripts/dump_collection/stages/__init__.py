"""The gates of the stages: what a folder lacks, and the command or the edit that repairs it. Reads files only.

``workdir``      the folder of one collection: its task card, its artefacts, its commands
``beginning``    stages 0 to 2: the target, the machine, the authorisations
``site``         stage 3: what runs here, and the three places in its code
``places``       a symbol and where it was seen, opened and searched again
``inputs``       stage 4: the switches of the launch command
``parameters``   stage 5: the report of the parameters
``integration``  stages 6 and 9: the change ledger
``captured``     stages 7 and 8: the pair of dumps, the override
``gates``        all of them, each with those before it
"""
