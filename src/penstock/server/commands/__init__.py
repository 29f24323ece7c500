"""Commands that work on a client or on the server itself. Data is engine/commands' business."""
