"""A real engine, for samples; outside CI, in an environment of its own (README.md).

``vllm_side``    one run of a tiny Qwen2 under msprobe, as a trainer has it or inside vLLM: the only module that needs that environment
``vllm_rounds``  the pair, the rounds by both skills' commands, and the sample that is made of them
"""
