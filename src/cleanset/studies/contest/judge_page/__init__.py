"""The judge page: a local web server where one judge answers questions on submitted images."""
