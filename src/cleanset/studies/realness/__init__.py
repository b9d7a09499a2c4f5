"""The realness study, in which people rate images: its plan, page (static/study.js), server and analysis."""
