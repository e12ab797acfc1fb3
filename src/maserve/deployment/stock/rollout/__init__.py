"""The actors of a Deployment's rollout, one file each."""
