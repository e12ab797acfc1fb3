"""The actors of a Deployment's steadystate, one file each."""
