"""The common parts of the local pages: server, guard against foreign requests, images, the time before an answer."""

MIN_SHOWN_SECONDS = 0.5
"""Time for which images have been before a person until an answer to them counts.

A double press, or a key meant for the image before, comes within it. A study's plan has a time of its own.
"""
