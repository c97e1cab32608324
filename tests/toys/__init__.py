"""A small trainer and a small engine over one set of weights, dumped by the real msprobe, with switchable faults and roundings.

    with Toys(folder) as toys:                                # toys.pairs; one process imports torch and msprobe, and forks for each dump
        clean = toys.both()                                   # Dumped(train, infer, on): two roots, and what is switched on
        faulty = toys.pair("eps", "infer")                    # one switch on one side, at layer 1, and what it is to be seen against
        several = toys.both(infer=Switches((("eps", 1), ("one_channel", 2))))
    mapping.rows(faulty.on)                                   # the rows of that pair, to be written as rows.json

The clean pair is equal bit for bit, fused parts against separate ones, and its bits are the same on every CPU.

``switches``    what can be switched, what it changes, where it is put in and where it must show
``weights``     sizes, prompt and weights, by integer arithmetic
``arithmetic``  products, sums, softmax, sines: elementwise IEEE operations in a fixed order
``trainer``     the model as transformers has it: [1, tokens, H], q, k, v, gate and up apart, one hidden state
``engine``      the model as vLLM has it: [tokens, H], fused qkv and gate_up, in-place add and norm, a pair (hidden, residual)
``mapping``     the rows that join the two, written by hand
``late``        a dump of the engine as msprobe before 26.2 makes it, inputs taken after the call
``manners``     runs that go wrong: killed, called twice, with verl imported …
``dumper``      the process that dumps; ``pairs`` asks it and imports neither torch nor msprobe
``arch``        toys of other architectures: ``toys.architecture("train", "latent")`` is the root of one side's dump
"""
