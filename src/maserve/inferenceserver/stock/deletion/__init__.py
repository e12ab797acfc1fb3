"""The two deletion actors."""
