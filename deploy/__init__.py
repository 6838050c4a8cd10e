"""Set-up and running of the platform: environment, jars, certificates, broker, processes."""
