"""The seven creation actors, one file each, in the order of the extension guide."""
