"""The toy on several ranks and in several dump steps, dumped by the real msprobe under torch.distributed (gloo).

    with Parallel(folder) as parallel:                        # pairs; one process imports torch and msprobe, and forks for each rank
        root = parallel.root(Job("megatron", tp=2))           # root/step0/rank0, root/step0/rank1
    value(reader(root), truth.rows(job)["layers.0.q.out"])    # what the ranks hold together, by hand and by torch alone

Whatever the layout, the bits are those of the toy on one rank, but for row-parallel sums: two ranks' parts are rounded before they are
added, which is what the toy computes on one rank with ``partial_sums`` switched on.

``jobs``     what a dump is asked for by, and where each rank stands
``ranks``    what ranks exchange
``trainer``  modules, names and shapes of Megatron-core: tensor, sequence, pipeline and context parallel
``engine``   modules, names and shapes of ``toys.engine``: tensor parallel, with a cache for chunks and prefixes
``dumper``   the process that dumps; replicas, FSDP1 and FSDP2 run ``toys.trainer``
``pairs``    asks it, and imports neither torch nor msprobe
``truth``    how each boundary is put together, by hand; ``values`` applies that by torch
"""
