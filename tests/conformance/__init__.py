"""What every registered part of a kind must do."""
