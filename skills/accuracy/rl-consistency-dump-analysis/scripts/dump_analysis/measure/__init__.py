"""The measures of one mapping row that differs: sums over its blocks, and what they say.

``row`` takes the blocks and names the sizes; ``figures`` sums (``gridsums`` holds the sums, ``steps`` counts ULPs and
directions); ``gains`` fits lines (``regression``); ``where`` says where the difference lies (``heads`` names heads).
"""
