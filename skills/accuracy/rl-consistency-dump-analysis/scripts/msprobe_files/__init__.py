"""What both skills must agree on about msprobe dumps: names, files, units, operands, the task card.

Python 3.8 and the standard library alone (numpy is imported inside the functions that need it),
because these modules also run inside other people's training and inference containers.
"""
