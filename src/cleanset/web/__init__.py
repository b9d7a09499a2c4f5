"""The common parts of the local pages: server, guard against foreign requests, images, the time before an answer.

Scripts of all pages are in static/: seen.js (what is in sight, and whether the page is zoomed), pixels.js (images at
their own pixels), loader.js, keyboard.js, view.js.
"""

MIN_SHOWN_SECONDS = 0.5
"""Time for which an image or a question has been before a person, unchanged, until an answer to it counts.

A double press, or a key meant for what was there before, comes within it. A study's plan has a time of its own.
"""
