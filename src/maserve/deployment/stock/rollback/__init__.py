"""The actors of a Deployment's rollback, one file each."""
