"""The scenarios of XIMAGENET-12."""
