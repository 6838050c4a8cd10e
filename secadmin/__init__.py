"""SecAdmin: the control service of the platform, and its command line."""
