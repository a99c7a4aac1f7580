"""The program ``unsloth-hook``: a file for each command, and what only that command needs beside it."""
