"""The actors of a Deployment's cleanup, one file each."""
