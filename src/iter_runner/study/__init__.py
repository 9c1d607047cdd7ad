"""Sessions on disk and the reports drawn from them."""
