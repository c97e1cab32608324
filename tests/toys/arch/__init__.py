"""Toys of many architectures: one decoder with options, as a trainer has it and as an engine has it, dumped by the real msprobe.

Unlike the toys beside this package they use torch's own products: what they test is which tensor is which, not which bit.

``shapes``   what an architecture is, the list of them, and the faults
``weights``  one set of weights, by the names of boundaries
``parts``    norms, rotation, attention as both sides compute them
``mixture``  experts and their routers, as both sides run them
``trainer``  tensors [1, tokens, H], own or fused projections, sums outside any module
``engine``   tensors [tokens, H], fused projections, sums inside norms where the architecture's engines have that, logits of the last row
``truth``    the rows that join the two, written from the modules' names; needs no torch
"""
