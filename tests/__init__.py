"""The tests mirror src/penstock; support/ holds what several of them share."""
