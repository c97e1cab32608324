"""Parameters joined by what they hold."""
