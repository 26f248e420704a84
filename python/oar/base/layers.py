"""Empty, as in Paddle: its functions are those of ``oar.static.nn``."""
