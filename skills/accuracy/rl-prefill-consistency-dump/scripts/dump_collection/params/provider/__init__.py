"""The configuration that a bridge builds for the trainer, recorded: in the trainer's own environment, from config.json alone.

``stand_ins`` packages that are not installed, as empty modules; ``bridges``: where the named bridge class is;
``recording``  the provider that it builds, with what its class declares and what it does not
"""

from .recording import Recorded, record

__all__ = ["Recorded", "record"]
