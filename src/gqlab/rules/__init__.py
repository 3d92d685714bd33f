"""The update formulas as compiled parts: nothing here knows about states or about where samples come from."""
