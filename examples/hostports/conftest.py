pytest_plugins = ["nfparity.pytest_plugin"]
