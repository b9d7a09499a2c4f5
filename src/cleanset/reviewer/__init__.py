"""The review page: a local web server where a reviewer says what each picture is."""
