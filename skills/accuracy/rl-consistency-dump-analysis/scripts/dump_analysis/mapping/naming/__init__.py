"""What a joined row is called: its place in the network, told from who feeds whom."""
