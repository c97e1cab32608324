"""One-to-one assignment of rows to columns by score."""

import numpy as np

from dump_analysis.floats import Array

IMPOSSIBLE = -9.0  # score of a pair that cannot be joined
_CANNOT = -1.0  # what it counts as


def assign(score: Array) -> list[tuple[int, int]]:
    """The pairs (row, column) that score most together; those that cannot be joined are left out.

    score · |score| is summed: one certain join is worth more than two middling ones.
    """
    if not score.size:
        return []
    bounded = np.maximum(score, _CANNOT)
    return [(row, column) for row, column in cheapest(-bounded * np.abs(bounded)) if score[row, column] > IMPOSSIBLE / 2]


def cheapest(cost: Array) -> list[tuple[int, int]]:
    """The assignment of all rows (or all columns, if they are fewer) with the least total cost, by rising row.

    Shortest augmenting paths with dual variables: R. Jonker, A. Volgenant, Computing 38 (1987) 325; the form of
    D. F. Crouse, IEEE Trans. Aerosp. Electron. Syst. 52 (2016) 1679, which scipy uses too.
    """
    if cost.shape[0] > cost.shape[1]:
        return sorted((row, column) for column, row in cheapest(cost.T))
    rows, columns = cost.shape
    row_price, column_price = np.zeros(rows), np.zeros(columns)
    row_of = np.full(columns, -1)
    column_of = np.full(rows, -1)
    for start in range(rows):
        before, end, shortest, scanned = _path(cost, start, row_price, column_price, row_of)
        distance = shortest[end]
        visited = np.flatnonzero(scanned)
        row_price[start] += distance
        others = visited[row_of[visited] >= 0]
        row_price[row_of[others]] += distance - shortest[others]
        column_price[visited] -= distance - shortest[visited]
        _augment(start, end, before, row_of, column_of)
    return [(row, int(column_of[row])) for row in range(rows)]


def _path(cost: Array, start: int, row_price: Array, column_price: Array, row_of: Array) -> tuple[Array, int, Array, Array]:
    """The shortest path from a free row to a free column: predecessors, its end, distances, and which columns were scanned."""
    columns = cost.shape[1]
    shortest = np.full(columns, np.inf)
    before = np.full(columns, -1)
    scanned = np.zeros(columns, bool)
    row, reached = start, 0.0
    while True:
        through = reached + cost[row] - row_price[row] - column_price
        nearer = ~scanned & (through < shortest)
        shortest[nearer] = through[nearer]
        before[nearer] = row
        open_columns = np.where(scanned, np.inf, shortest)
        column = int(open_columns.argmin())
        reached = shortest[column]
        scanned[column] = True
        if row_of[column] < 0:
            return before, column, shortest, scanned
        row = int(row_of[column])


def _augment(start: int, end: int, before: Array, row_of: Array, column_of: Array) -> None:
    """Flip the path that ends at a free column."""
    column = end
    while True:
        row = int(before[column])
        row_of[column] = row
        column_of[row], column = column, int(column_of[row])
        if row == start:
            return
