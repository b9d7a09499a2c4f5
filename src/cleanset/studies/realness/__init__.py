"""The realness study, in which people rate images: plan, page (static/study.js), server, simulated pilot, analysis."""
