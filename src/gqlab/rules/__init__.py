"""The update formulas as compiled parts: what stands here knows neither states nor where samples come from."""
