"""The dashboard: what is asked and computed here, without NiceGUI; pages/ draws it."""
