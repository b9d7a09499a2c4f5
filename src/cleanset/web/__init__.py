"""The common parts of the local pages: server, guard against foreign requests, images, the time before an answer."""

MIN_SHOWN_SECONDS = 0.5
"""Time for which an image or a question has been before a person, unchanged, until an answer to it counts.

A double press, or a key meant for what was there before, comes within it. A study's plan has a time of its own.
"""
