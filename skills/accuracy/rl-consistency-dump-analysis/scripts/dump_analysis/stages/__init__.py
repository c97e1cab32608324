"""The gates of the stages: what a folder lacks before the next stage may begin, and the command that repairs each gap."""
