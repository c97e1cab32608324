"""The configuration that msprobe reads on each side, made so that the traps of the installed release are not stepped into.

``releases``     which msprobe is installed, and what a release can
``configuring``  the configuration of a purpose, checked: what is refused, what is warned of, how it is handed over
``overriding``   the ``load`` section, checked against its source folder
``model_shape``  the sizes of a model, from its configuration in any spelling
``dump_size``    how large a dump becomes, and whether the disk has room for it
"""
