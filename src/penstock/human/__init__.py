"""How people read and type what streams hold: text, moments, conditions. Terminal and dashboard share it."""
