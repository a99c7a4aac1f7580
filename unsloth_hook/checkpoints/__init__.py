"""Old checkpoints: read a ``training_args.bin`` safely, say what it holds, open it, make it portable."""
