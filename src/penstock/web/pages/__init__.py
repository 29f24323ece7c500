"""The pages of the dashboard, in NiceGUI. They ask through web/, and never decide what may be written."""
