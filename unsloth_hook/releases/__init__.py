"""What is known of TRL, transformers, accelerate and Unsloth: their releases, and the ones that are installed."""
