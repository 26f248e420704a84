"""How the stages of a pipeline take turns and talk to each other."""
