"""Override rounds (floor 9): what to override next (`plan`), and what a round has shown (`judge`)."""
