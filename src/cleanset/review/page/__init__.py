"""The review page: a local web server where one reviewer decides on each image."""
