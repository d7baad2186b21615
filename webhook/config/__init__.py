"""Configuration files: schemas, loaders, the sets in force."""
