"""Blocks and optimizers' state outside near memory."""
